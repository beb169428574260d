"""The rules a prompt must keep. Each is checked on its own and refused with the field and the rule it breaks."""

import math
import re
from collections.abc import Iterable

from gpu_consumers.engines.options import check_options
from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.headers import RawHeaders
from schemas.records import PromptSubmitted, Shot, Transition

MAX_TEXT_CHARS = 10_000
MAX_CAMERA_CHARS = 200
MAX_PROMPT_BYTES = 100_000
"""All texts of a prompt together: they travel in the director's rows and in every request."""
MAX_SHOTS = 500
MAX_NEGATIVE = 50
MAX_OPTIONS = 32
MIN_S, MAX_S = 0.5, 3600.0
MIN_SIDE, MAX_SIDE = 64, 16_384
MAX_FPS = 120.0
DEFAULT_TENANT = "default"
_MAX_SEED = (1 << 63) - 1
_YEAR_2100_US = 4_102_444_800_000_000
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OPTION_VALUE_CHARS = 256
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and line ends, and surrogates, which have no UTF-8."""
_INVISIBLE = re.compile(
    r"[\u2028\u2029\u200b\u2060-\u2064\u2066-\u206f\u202a-\u202e\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""What hides text, or shows it in another order than the engine reads it: zero-width spaces, bidirectional embeddings, overrides
and isolates, tag characters, and line ends that logs do not know. Joiners and plain direction marks are script, and stay.
Source: Unicode Technical Report 36 and 55."""


def check_job_id(job_id: str) -> None:
    """Job ids name objects in the store: no separators, no dots up. Raises: BadInputError."""
    if not _JOB_ID.fullmatch(job_id) or ".." in job_id:
        raise refused("job_id", "characters", "1 to 100 letters, digits, '.', '_' or '-', without '..', not '.' first")


def check_prompt(prompt: PromptSubmitted) -> None:
    """Everything about a prompt that needs no arithmetic on the timeline. Raises: BadInputError."""
    check_job_id(prompt.job_id)
    if not _TENANT.fullmatch(prompt.tenant) or ".." in prompt.tenant:
        raise refused("tenant", "characters", "1 to 64 letters, digits, '.', '_' or '-', without '..', not '.' first")
    _check_texts(prompt)
    _check_engine(prompt)
    _check_size(prompt)
    if not (math.isfinite(prompt.fps) and 0 < prompt.fps <= MAX_FPS):
        raise refused("fps", "range", f"{prompt.fps} is not above 0 and at most {MAX_FPS:g}")
    if prompt.duration_s is not None:
        check_seconds("duration_s", prompt.duration_s)
    _check_seed("seed", prompt.seed)
    if not 0 <= prompt.submitted_us < _YEAR_2100_US:
        raise refused("submitted_us", "range", "not microseconds since 1970, before the year 2100")
    for index, shot in enumerate(prompt.shots):
        _check_shot(f"shots[{index}]", shot)


def tenant_of(prompt: PromptSubmitted, headers: RawHeaders) -> str:
    """The prompt's tenant; if it names none, that of a `tenant` header, which a gateway can set without reading the prompt."""
    if prompt.tenant != DEFAULT_TENANT:
        return prompt.tenant
    named = next((value for name, value in headers if name == "tenant" and value), None)
    return named.decode(errors="replace") if named else DEFAULT_TENANT


def check_seconds(field: str, seconds: float) -> None:
    """Raises: BadInputError if it is not a length a job or shot can have."""
    if not (math.isfinite(seconds) and MIN_S <= seconds <= MAX_S):
        raise refused(field, "range", f"{seconds:g} s is not from {MIN_S:g} to {MAX_S:g} s")


def refused(field: str, rule: str, message: str) -> BadInputError:
    """The error that refuses a prompt."""
    return BadInputError(field=field, rule=rule, message=message)


def _check_texts(prompt: PromptSubmitted) -> None:
    texts = [prompt.text, *prompt.negative, *(s.prompt for s in prompt.shots), *(s.camera or "" for s in prompt.shots)]
    texts += [each.text for each in (*prompt.narration, *prompt.subtitles)]
    for index, negative in enumerate(prompt.negative):
        check_text(f"negative[{index}]", negative, MAX_TEXT_CHARS)
    if len(prompt.negative) > MAX_NEGATIVE:
        raise refused("negative", "count", f"{len(prompt.negative)} of them, at most {MAX_NEGATIVE}")
    if len(prompt.shots) > MAX_SHOTS:
        raise refused("shots", "count", f"{len(prompt.shots)} of them, at most {MAX_SHOTS}")
    if prompt.text or not prompt.shots:
        check_text("text", prompt.text, MAX_TEXT_CHARS)
    if (size := sum(len(text.encode(errors="replace")) for text in texts)) > MAX_PROMPT_BYTES:
        raise refused("text", "total_length", f"all texts together are {size} bytes, at most {MAX_PROMPT_BYTES}")


def _check_shot(field: str, shot: Shot) -> None:
    check_text(f"{field}.prompt", shot.prompt, MAX_TEXT_CHARS)
    if shot.camera:
        check_text(f"{field}.camera", shot.camera, MAX_CAMERA_CHARS)
    if shot.seconds is not None:
        check_seconds(f"{field}.seconds", shot.seconds)
    if shot.seed is not None:
        _check_seed(f"{field}.seed", shot.seed)
    if shot.transition not in list(Transition):
        raise refused(f"{field}.transition", "transition", f"{shot.transition!r:.40} is not one of {_list(Transition)}")


def _check_engine(prompt: PromptSubmitted) -> None:
    if prompt.engine not in ENGINES:
        raise refused("engine", "unknown_engine", f"{prompt.engine!r:.80} is not one of {_list(ENGINES)}")
    if len(prompt.engine_options) > MAX_OPTIONS:
        raise refused("engine_options", "count", f"{len(prompt.engine_options)} of them, at most {MAX_OPTIONS}")
    for name, value in prompt.engine_options.items():
        if not _OPTION.fullmatch(name):
            raise refused(
                "engine_options", "characters", f"{name!r:.80} is not a lower-case name of 1 to 64 characters"
            )
        if value:
            check_text(f"engine_options.{name}", value, _OPTION_VALUE_CHARS)
    check_options(prompt.engine, prompt.engine_options)


def _check_size(prompt: PromptSubmitted) -> None:
    for field, pixels in (("width", prompt.width), ("height", prompt.height)):
        if not MIN_SIDE <= pixels <= MAX_SIDE:
            raise refused(field, "range", f"{pixels} is not from {MIN_SIDE} to {MAX_SIDE}")
        if pixels % 2:
            raise refused(field, "even", f"{pixels} is odd: 4:2:0 video halves both sides")
        multiple = ENGINES[prompt.engine].side_multiple
        if pixels % multiple:
            raise refused(field, "multiple", f"{pixels} is not a multiple of {multiple}, as the engine needs it")
    most = ENGINES[prompt.engine].max_pixels
    if prompt.width * prompt.height > most:
        raise refused("width", "pixels", f"{prompt.width}x{prompt.height} is more than the {most} pixels of the engine")


def check_text(field: str, text: str, most: int) -> None:
    """Raises: BadInputError if it is empty, too long or hides something."""
    if not text.strip():
        raise refused(field, "required", "is empty")
    if len(text) > most:
        raise refused(field, "length", f"{len(text)} characters, at most {most}")
    if found := _CONTROL.search(text):
        raise refused(field, "control_characters", f"U+{ord(found[0]):04X} at {found.start()}")
    if found := _INVISIBLE.search(text):
        raise refused(field, "invisible_characters", f"U+{ord(found[0]):04X} at {found.start()}")


def _check_seed(field: str, seed: int) -> None:
    if not 0 <= seed <= _MAX_SEED:
        raise refused(field, "range", f"not from 0 to {_MAX_SEED}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
