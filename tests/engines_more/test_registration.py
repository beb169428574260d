"""Engines of other packages, found by their entry points; and engines whose libraries are not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_consumers.engines.engine import EngineError, create
from gpu_consumers.engines.options import check_options
from schemas import engines
from schemas.engines import EngineLimits
from schemas.errors import BadInputError

MODULE = """
from schemas.engines import EngineLimits

LIMITS = EngineLimits(max_segment_frames=7, overlap_frames=1, state_segments=2, max_pixels=64)

class Painter:
    name, version = "painter", "3"
"""
ENTRY_POINTS = """
[longtake.engines]
painter = painter_engine:Painter
broken = painter_engine_that_is_gone:Broken
animatic = painter_engine:Painter

[longtake.limits]
painter = painter_engine:LIMITS
animatic = painter_engine:LIMITS
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings an engine."""
    (tmp_path / "painter_engine.py").write_text(MODULE)
    info = tmp_path / "painter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: painter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_an_installed_package_brings_its_engine() -> None:
    assert create("painter").version == "3"


@pytest.mark.usefixtures("package")
def test_no_package_takes_the_place_of_a_built_in_engine() -> None:
    assert create("animatic").version != "3"


@pytest.mark.usefixtures("package")
def test_its_limits_are_known_to_who_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "ENGINES", dict(engines.ENGINES))
    animatic = engines.ENGINES["animatic"]
    engines.add_installed()
    limits = EngineLimits(max_segment_frames=7, overlap_frames=1, state_segments=2, max_pixels=64)
    assert engines.ENGINES["painter"] == limits
    assert engines.ENGINES["animatic"] == animatic


@pytest.mark.usefixtures("package")
def test_an_engine_that_cannot_be_imported_says_what_is_missing() -> None:
    with pytest.raises(EngineError, match=r"the broken engine needs painter_engine_that_is_gone$") as caught:
        create("broken")
    assert not caught.value.retryable


@pytest.mark.usefixtures("package")
def test_an_unknown_engine_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(EngineError, match="'animatic', 'broken', 'causal_dit', 'diffusers', 'painter', 'veo'"):
        create("sculptor")


@pytest.mark.parametrize(
    ("engine", "missing", "extra"), [("diffusers", "torch", "gpu"), ("veo", "google.genai", "veo")]
)
def test_without_its_libraries_an_engine_says_what_to_install(engine: str, missing: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from gpu_consumers.engines.engine import EngineError, create\n"
        f"try: create({engine!r})\nexcept EngineError as error: print(error.reason)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == f"the {engine} engine needs {missing}: pip install 'longtake[{extra}]'"


@pytest.mark.parametrize(
    ("engine", "options", "field", "rule"),
    [
        ("diffusers", {}, "model", "required"),
        ("diffusers", {"model": "/etc"}, "model", "path"),
        ("diffusers", {"model": "a/../../b"}, "model", "path"),
        ("diffusers", {"model": "m", "image": "~/x.png"}, "image", "path"),
        ("diffusers", {"model": "m", "steps": "0"}, "steps", "range"),
        ("diffusers", {"model": "m", "guidance": "high"}, "guidance", "type"),
        ("diffusers", {"model": "m", "size": "9"}, "size", "unknown_option"),
        ("veo", {"model": "veo 3"}, "model", "characters"),
        ("veo", {"key": "x"}, "key", "unknown_option"),
    ],
)
def test_options_are_refused_before_a_job_is_accepted(
    engine: str, options: dict[str, str], field: str, rule: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        check_options(engine, options)
    assert (caught.value.field, caught.value.rule) == (f"engine_options.{field}", rule)


def test_good_options_are_accepted() -> None:
    check_options(
        "diffusers", {"model": "Wan2.2/I2V", "opening": "t2v", "image": "a.png", "steps": "20", "guidance": "3.5"}
    )
    check_options("veo", {"model": "veo-3.1-fast-generate-preview", "people": "allow_adult"})
    check_options("painter", {"whatever": "else"})
