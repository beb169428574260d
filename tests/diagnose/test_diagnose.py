"""Aborts in logs: what they say, what the lines around them say, and which of the two is believed."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpu_consumers.diagnose import CHECKS, MODULES, Diagnosis, abort_line, diagnose
from gpu_consumers.engines.engine import EngineError
from gpu_consumers.failed import failed
from schemas.records import FailureKind
from tests.gpu_consumers.requests import segment_request

QUIET = [f"2026-11-30T19:06:{s:02}.000000Z INFO engine block {s} of 40 denoised" for s in range(60)]


def only(lines: Sequence[str]) -> Diagnosis:
    (found,) = diagnose(lines)
    return found


def abort(reason: str = "GPU timeout", frame: int = 1834, gpu: int = 2) -> str:
    return f'2026-11-30T19:07:00.000000Z ERROR engine RENDER_ABORT frame={frame} gpu={gpu} reason="{reason}"'


def test_an_abort_is_read_from_its_line() -> None:
    found = only([*QUIET, abort("CUDA out of memory")])
    assert (found.line, found.frame, found.gpu, found.reason) == (61, 1834, "2", "CUDA out of memory")
    assert found.kind is FailureKind.OUT_OF_MEMORY
    assert found.module == MODULES[FailureKind.OUT_OF_MEMORY]
    assert any("longtake plan" in check for check in found.check)


def test_the_cause_above_is_believed_before_the_symptom() -> None:
    xid = "kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=4242, name=python, GPU has fallen off the bus."
    found = only([*QUIET, xid, *QUIET[:20], abort("GPU timeout")])
    assert found.kind is FailureKind.DEVICE_LOST
    assert found.evidence == xid


def test_what_follows_an_abort_belongs_to_it_for_a_few_lines() -> None:
    nccl = "[rank1] ERROR ProcessGroupNCCL: collective operation timeout: WorkNCCL(SeqNum=7)"
    assert only([abort(), *QUIET[:5], nccl, *QUIET]).kind is FailureKind.SYNC
    assert only([abort(), *QUIET[:30], nccl]).kind is FailureKind.TIMEOUT


def test_lines_of_the_abort_before_are_not_evidence() -> None:
    first, second = diagnose(["ERROR CUDA out of memory", abort("worker died"), *QUIET[:12], abort("GPU timeout")])
    assert first.kind is FailureKind.OUT_OF_MEMORY
    assert second.kind is FailureKind.TIMEOUT
    first, second = diagnose([abort("GPU timeout"), abort("NaN in latents")])
    assert (first.kind, second.kind) == (FailureKind.TIMEOUT, FailureKind.NAN)


def test_lines_that_are_long_past_are_not_evidence() -> None:
    assert only(["ERROR CUDA out of memory", *QUIET, abort("GPU timeout")]).kind is FailureKind.TIMEOUT


def test_what_is_said_without_trouble_is_not_evidence() -> None:
    daily = "2026-11-30T19:06:59.000000Z INFO encoder 12 duplicate frames skipped, sync every 4 s"
    assert only([daily, abort("worker went away")]).kind is None


def test_a_traceback_names_the_module() -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "/opt/longtake/gpu_consumers/stages.py", line 81, in denoise',
        '  File "/opt/longtake/gpu_consumers/engines/causal_dit/attention.py", line 28, in attend',
        '  File "/usr/lib/python3.11/site-packages/torch/nn/functional.py", line 6123, in scaled_dot_product_attention',
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ]
    found = only([*traceback, abort("engine process ended")])
    assert found.kind is FailureKind.KERNEL
    assert found.module == "gpu_consumers/engines/causal_dit/attention.py:28"
    assert only([*traceback[3:], abort("?")]).module.endswith("torch/nn/functional.py:6123")
    assert only([" | ".join(traceback), abort("?")]).module == "gpu_consumers/engines/causal_dit/attention.py:28"


@pytest.mark.parametrize(
    ("line", "frame", "gpu", "reason"),
    [
        ('RENDER_ABORT gpu=0 reason="a \\"quoted\\" word" frame=7', 7, "0", 'a "quoted" word'),
        ("RENDER_ABORT frame=7 gpu=GPU-1f3a reason=oom", 7, "GPU-1f3a", "oom"),
        ('RENDER_ABORT reason="C:\\models gone"', None, "", "C:\\models gone"),
        ("RENDER_ABORT frame=last", None, "", ""),
        ("RENDER_ABORT", None, "", ""),
    ],
)
def test_an_abort_may_be_worded_in_any_order_and_incompletely(
    line: str, frame: int | None, gpu: str, reason: str
) -> None:
    found = only([line])
    assert (found.frame, found.gpu, found.reason) == (frame, gpu, reason)


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    found = only([*QUIET, abort("reticulated splines")])
    assert (found.kind, found.module) == (None, "unknown")
    assert found.check


def test_every_kind_has_a_module_and_something_to_check() -> None:
    assert set(CHECKS) == set(MODULES) == set(FailureKind)


@pytest.mark.parametrize("kind", FailureKind)
def test_what_the_worker_writes_is_read_as_the_kind_it_means(kind: FailureKind) -> None:
    request = segment_request("job-9", attempt=2)
    event = failed(request, EngineError(kind, 'broke at "7"\n\tand ended'), engine_version="1", worker="generate-0")
    found = only([abort_line(request, event, "GPU-1f3a")])
    assert found.kind is kind
    assert (found.frame, found.gpu, found.reason) == (0, "GPU-1f3a", 'broke at "7"\n\tand ended')


def test_the_worker_names_a_crash_and_the_log_names_its_cause() -> None:
    request = segment_request()
    error = EngineError(FailureKind.CRASHED, "the engine process was ended by SIGKILL while in decode")
    event = failed(request, error, engine_version="1", worker="generate-0")
    lines = ["kernel: Out of memory: Killed process 4242 (python)", abort_line(request, event, "")]
    assert only(lines).kind is FailureKind.OUT_OF_MEMORY


def longtake(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.cli.main", "diagnose", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_says_class_module_and_checks(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("\n".join([*QUIET, abort("CUDA out of memory"), *QUIET, abort("[red]GPU timeout[/red]"), ""]))
    done = longtake(str(log))
    assert done.returncode == 0, done.stderr
    assert "line 61, frame 1834, gpu 2: out of memory" in done.stdout
    assert "said     [red]GPU timeout[/red]" in done.stdout
    assert "2 aborts" in done.stdout


def test_the_command_reads_standard_input_and_writes_json() -> None:
    done = longtake("-", "--json", stdin=abort("fence timeout"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "sync"


def test_a_log_without_aborts_is_another_exit_code(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"\xff\xfe all is well\n")
    assert longtake(str(log)).returncode == 4
    assert longtake(str(tmp_path / "missing.log")).returncode == 2


def test_an_abort_that_is_not_what_it_should_be_is_still_read() -> None:
    assert only(["RENDER_ABORT frame=" + "9" * 5_000]).frame is None
    assert only([r'RENDER_ABORT frame=7 reason="\ud800 out of memory"']).reason == "? out of memory"
    begun_s = time.monotonic()
    assert only(["RENDER_ABORT frame=7 " + "a" * 100_000]).frame == 7
    assert time.monotonic() - begun_s < 5  # 40 s where the word is begun anew at each of its letters
