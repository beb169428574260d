"""The veo engine against a local server that speaks the API's recorded protocol."""

import base64
import io
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from google.genai import types
from numpy.typing import NDArray
from PIL import Image

from gpu_consumers.engines.engine import EngineError, create
from gpu_consumers.engines.veo import Clip, VeoEngine, _extends
from schemas.records import FailureKind, SegmentRequested
from tests.engines_more.gemini import KEY, SIZE, Gemini, lumas, refusal, served
from tests.engines_more.requests import clip_request, planned_shot

HD = (1920, 1080)


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gemini]:
    with served() as server:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        yield server


@pytest.fixture
def engine(gemini: Gemini) -> Iterator[VeoEngine]:
    made = VeoEngine(poll_s=0.01)
    yield made
    made.close()


def request(segment: int = 0, frames: int = 168, size: tuple[int, int] = SIZE, **changes: object) -> SegmentRequested:
    return clip_request("veo", segment, frames=frames, size=size, **changes)  # type: ignore[arg-type]


def run(
    engine: VeoEngine, wanted: SegmentRequested, before: Sequence[NDArray[np.generic]] = ()
) -> tuple[NDArray[np.generic], NDArray[np.uint8]]:
    state = engine.restore(wanted, before)
    *beats, latents = state.denoise(wanted)
    assert all(len(beat) == 0 for beat in beats)
    return latents, state.decode(wanted, latents)


def shows(frames: NDArray[np.uint8], first: int) -> bool:
    """The frames are the take's, from frame `first` on."""
    return bool(np.abs(frames.mean(axis=(1, 2, 3)) - lumas(first, len(frames))).max() < 3)


def refused(engine: VeoEngine, wanted: SegmentRequested, before: Sequence[NDArray[np.generic]] = ()) -> EngineError:
    with pytest.raises(EngineError) as caught:
        run(engine, wanted, before)
    assert KEY not in str(caught.value)
    return caught.value


def test_a_text_is_submitted_waited_for_and_downloaded(gemini: Gemini, engine: VeoEngine) -> None:
    _, frames = run(engine, request(frames=90, negative=("rain", "people")))
    assert frames.shape == (90, SIZE[1], SIZE[0], 3)
    assert shows(frames, 0)
    (asked,) = gemini.asked
    assert asked["instances"] == [{"prompt": "a fox runs"}]
    assert asked["parameters"] == {
        "sampleCount": 1,
        "durationSeconds": 4,
        "aspectRatio": "16:9",
        "resolution": "720p",
        "negativePrompt": "rain, people",
    }


@pytest.mark.parametrize(("frames", "seconds"), [(96, 4), (97, 6), (144, 6), (145, 8)])
def test_no_more_seconds_are_paid_for_than_are_needed(
    gemini: Gemini, engine: VeoEngine, frames: int, seconds: int
) -> None:
    run(engine, request(frames=frames))
    assert gemini.asked[0]["parameters"]["durationSeconds"] == seconds


def test_a_take_goes_on_by_extending_its_clip(gemini: Gemini, engine: VeoEngine) -> None:
    first, frames = run(engine, request(0))
    assert shows(frames, 0)
    second, frames = run(engine, request(1), [first])
    assert frames.shape[0] == 168
    assert shows(frames, 168)
    uri = gemini.asked[1]["instances"][0]["video"]["uri"]
    assert uri == "https://generativelanguage.googleapis.com/v1beta/files/clip0:download?alt=media"
    _, frames = run(engine, request(2, frames=100, start=336), [second])
    assert shows(frames, 336)
    assert len(gemini.asked) == 3


def test_frames_that_the_clip_already_has_cost_nothing(gemini: Gemini, engine: VeoEngine) -> None:
    first, _ = run(engine, request(0, frames=150))
    same, frames = run(engine, request(1, frames=40, start=150), [first])
    assert shows(frames, 150)
    assert np.array_equal(same, first)
    assert len(gemini.asked) == 1


def test_a_held_state_and_a_restored_one_ask_for_the_same(gemini: Gemini, engine: VeoEngine) -> None:
    held = engine.restore(request(0), [])
    *_, first = held.denoise(request(0))
    *_, _ = held.denoise(request(1))
    run(engine, request(1), [first])
    assert gemini.asked[1] == gemini.asked[2]


def test_at_a_cut_a_new_clip_begins(gemini: Gemini, engine: VeoEngine) -> None:
    first, _ = run(engine, request(0, frames=96))
    sea = (planned_shot("the sea", 96, 200, number=1),)
    _, frames = run(engine, request(1, frames=96, shots=sea), [first])
    assert shows(frames, 0)
    assert gemini.asked[1]["instances"] == [{"prompt": "the sea"}]


def test_where_the_api_does_not_extend_the_take_goes_on_from_its_last_picture(
    gemini: Gemini, engine: VeoEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first, _ = run(engine, request(0, frames=96))
    gone = "You do not have permission to access the File clip0 or it may not exist."
    gemini.answers.append(refusal(403, "PERMISSION_DENIED", gone))
    _, frames = run(engine, request(1, frames=96), [first])
    assert gone in caplog.text
    image = gemini.asked[2]["instances"][0]["image"]
    assert image["mimeType"] == "image/png"
    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(image["bytesBase64Encoded"]))))
    assert abs(float(seen.mean()) - lumas(95, 1)[0]) < 3
    assert shows(frames, 231)  # the clip's first frame repeats the picture


def test_above_720p_clips_are_not_extended(gemini: Gemini, engine: VeoEngine) -> None:
    first, frames = run(engine, request(0, frames=24, size=HD))
    assert frames.shape == (24, 1080, 1920, 3)
    run(engine, request(1, frames=24, start=192, size=HD), [first])
    assert [asked["parameters"]["resolution"] for asked in gemini.asked] == ["1080p", "1080p"]
    assert [asked["parameters"]["durationSeconds"] for asked in gemini.asked] == [8, 8]
    assert "image" in gemini.asked[1]["instances"][0]


def test_a_clip_of_two_minutes_and_more_is_not_extended() -> None:
    hd = types.GenerateVideosConfig(resolution="720p")
    assert _extends(Clip(uri="u", start_frame=0, frames=141 * 24, mp4=b""), hd)
    assert not _extends(Clip(uri="u", start_frame=0, frames=141 * 24 + 1, mp4=b""), hd)


def test_a_portrait_is_asked_for_as_one(gemini: Gemini, engine: VeoEngine) -> None:
    _, frames = run(engine, request(frames=24, size=(72, 128)))
    assert frames.shape == (24, 128, 72, 3)
    assert gemini.asked[0]["parameters"]["aspectRatio"] == "9:16"


def test_a_full_minutes_quota_is_waited_for_when_the_api_says_how_long(gemini: Gemini, engine: VeoEngine) -> None:
    gemini.answers.append(refusal(429, "RESOURCE_EXHAUSTED", "Quota exceeded for requests per minute", delay_s=0.05))
    _, frames = run(engine, request(frames=24))
    assert len(frames) == 24
    assert len(gemini.asked) == 2


def test_a_days_quota_is_a_failure_that_may_be_tried_again(gemini: Gemini, engine: VeoEngine) -> None:
    gemini.answers += [refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", delay_s=40_000)]
    error = refused(engine, request(frames=24))
    assert error.reason == "the quota of the Gemini API is used up: You exceeded your current quota (429)"
    assert error.retryable


def test_the_safety_filters_reasons_are_said_and_the_job_is_not_tried_again(gemini: Gemini, engine: VeoEngine) -> None:
    why = "We encountered an issue with the audio for your prompt. You have not been charged."
    filtered = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": [why]}
    gemini.outcomes.append({"response": {"generateVideoResponse": filtered}})
    error = refused(engine, request(frames=24))
    assert (error.kind, error.retryable) == (FailureKind.ENGINE, False)
    assert error.reason == f"refused by the safety filter: {why}"


def test_a_filtered_extension_is_not_tried_in_another_way(gemini: Gemini, engine: VeoEngine) -> None:
    first, _ = run(engine, request(0, frames=96))
    gemini.outcomes.append({"response": {"generateVideoResponse": {"raiMediaFilteredCount": 1}}})
    assert "no reason given" in refused(engine, request(1, frames=96), [first]).reason
    assert len(gemini.asked) == 2


@pytest.mark.parametrize(
    ("operation", "reason", "retryable"),
    [
        ({"code": 8, "message": "out of quota"}, "quota of the Gemini API is used up: out of quota", True),
        ({"code": 13, "message": "internal"}, "failed: internal", True),
        ({"code": 3, "message": "this prompt"}, "refuses: this prompt", False),
    ],
)
def test_an_operation_that_fails_says_so(
    gemini: Gemini, engine: VeoEngine, operation: dict[str, object], reason: str, retryable: bool
) -> None:
    gemini.outcomes.append({"error": operation})
    error = refused(engine, request(frames=24))
    assert reason in error.reason
    assert error.retryable is retryable


def test_a_clip_that_is_being_made_is_not_lost_when_the_api_stumbles(gemini: Gemini, engine: VeoEngine) -> None:
    gemini.hiccups += [refusal(503, "UNAVAILABLE", "overloaded"), refusal(429, "RESOURCE_EXHAUSTED", "slow down")]
    _, frames = run(engine, request(frames=24))
    assert len(frames) == 24
    assert len(gemini.asked) == 1


def test_a_server_that_fails_or_is_away_is_an_io_failure(gemini: Gemini, engine: VeoEngine) -> None:
    gemini.answers.append(refusal(500, "INTERNAL", "internal error"))
    error = refused(engine, request(frames=24))
    assert (error.kind, error.retryable) == (FailureKind.IO, True)


def test_no_server_is_an_io_failure(engine: VeoEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    error = refused(VeoEngine(poll_s=0.01), request(frames=24))
    assert (error.kind, error.retryable) == (FailureKind.IO, True)
    assert "not reached" in error.reason


def test_the_key_comes_from_the_environment_and_is_not_told(gemini: Gemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "wrong-key")
    with pytest.raises(EngineError, match="API key not valid") as caught:
        run(VeoEngine(poll_s=0.01), request(frames=24))
    assert "wrong-key" not in str(caught.value)
    assert not caught.value.retryable
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(EngineError, match="needs GEMINI_API_KEY"):
        create("veo")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"fps": 16}, "24 frames per second, not 16/1"),
        ({"size": (100, 100)}, "16:9 and 9:16, not 100x100"),
        ({"options": {"speed": "9"}}, "knows model, people"),
    ],
)
def test_what_veo_does_not_make_is_refused_before_anything_is_paid(
    gemini: Gemini, engine: VeoEngine, changes: dict[str, object], why: str
) -> None:
    error = refused(engine, request(frames=24, **changes))  # type: ignore[arg-type]
    assert why in error.reason
    assert not error.retryable
    assert gemini.asked == []


def test_latents_that_are_no_clip_or_of_another_place_are_a_missing_state(gemini: Gemini, engine: VeoEngine) -> None:
    first, _ = run(engine, request(0, frames=96))
    for before in ([], [np.zeros((40, 1, 1, 1), np.uint8)], [first[:20]]):
        assert refused(engine, request(1, frames=96), before).kind is FailureKind.STATE_MISSING
    assert refused(engine, request(2, frames=96), [first]).kind is FailureKind.STATE_MISSING
