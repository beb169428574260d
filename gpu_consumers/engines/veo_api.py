"""The Gemini API's Veo, as far as the engine needs it: a clip from a text, from a picture, or longer than one made before.

The API makes clips in minutes: a request is submitted, asked after until it is done, and downloaded. What it refuses becomes an
EngineError in its own words. Limits: Gemini API, "Generate videos with Veo 3.1".
"""

import os
import re
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import httpx
from google import genai
from google.genai import errors, types

from gpu_consumers.engines.engine import EngineError
from schemas.records import FailureKind

Out = TypeVar("Out")
FPS = 24
LENGTHS_S = (4, 6, 8)
LONGEST_S = 141
"""A longer clip is not extended."""
_POLL_S = 10.0
_LIMIT_S = 900.0
"""The API says that a clip takes 11 s to 6 min."""
_WAIT_S = 300.0
"""As long in all a full minute's quota is waited for, if the API says when to come again."""
_TOO_MANY, _SERVER = 429, 500
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


class RequestRefusedError(EngineError):
    """The API does not do this, whatever else it would do. Its words are the reason."""

    def __init__(self, words: str) -> None:
        super().__init__(FailureKind.ENGINE, f"the Gemini API refuses: {words}", retryable=False)


class VeoApi:
    """A client with the key from `GEMINI_API_KEY`. Raises: EngineError if there is none."""

    def __init__(self, poll_s: float = _POLL_S) -> None:
        key = os.environ.get("GEMINI_API_KEY", "")
        if not key:
            raise EngineError(FailureKind.ENGINE, "the veo engine needs GEMINI_API_KEY", retryable=False)
        self._poll_s = poll_s
        self._client = genai.Client(api_key=key, vertexai=False, http_options=types.HttpOptions(timeout=120_000))

    def clip(
        self, model: str, source: types.GenerateVideosSource, config: types.GenerateVideosConfig
    ) -> Generator[None, None, tuple[str, bytes]]:
        """The clip's address and its MP4; yields while it waits. Raises: EngineError."""
        operation = yield from self._submitted(model, source, config)
        end_s = time.monotonic() + _LIMIT_S
        while not operation.done:
            if time.monotonic() > end_s:
                raise EngineError(FailureKind.TIMEOUT, f"{operation.name} is not done after {_LIMIT_S:.0f} s")
            yield from self._waited(self._poll_s)
            operation = self._polled(operation)
        if operation.error:
            raise _of_operation(operation.error)
        video = _video_of(operation.response)
        return video.uri or "", _asked(lambda: self._client.files.download(file=video))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _submitted(
        self, model: str, source: types.GenerateVideosSource, config: types.GenerateVideosConfig
    ) -> Generator[None, None, types.GenerateVideosOperation]:
        left_s = _WAIT_S
        while True:
            try:
                return self._client.models.generate_videos(model=model, source=source, config=config)
            except errors.APIError as error:
                delay_s = _delay_s(error)
                if delay_s is None or delay_s > left_s:
                    raise _refused(error) from error
                left_s -= delay_s
            except httpx.TransportError as error:
                raise _unreachable(error) from error
            yield from self._waited(delay_s)

    def _waited(self, seconds: float) -> Generator[None]:
        """Sleep, with a sign of life at least every poll interval."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            yield
            time.sleep(min(left_s, self._poll_s))

    def _polled(self, operation: types.GenerateVideosOperation) -> types.GenerateVideosOperation:
        """A failed question is asked again at the next poll: the clip is being made, and paid for, all the same."""
        try:
            return self._client.operations.get(operation)
        except httpx.TransportError:
            return operation
        except errors.APIError as error:
            if error.code == _TOO_MANY or error.code >= _SERVER:
                return operation
            raise _refused(error) from error


def _video_of(response: types.GenerateVideosResponse | None) -> types.Video:
    """The first video. Raises: EngineError (not retryable) if the safety filter has taken it out."""
    videos = [made.video for made in (response.generated_videos or []) if made.video] if response else []
    if videos:
        return videos[0]
    reasons = "; ".join((response.rai_media_filtered_reasons or []) if response else [])
    raise EngineError(
        FailureKind.ENGINE, f"refused by the safety filter: {reasons or 'no reason given'}", retryable=False
    )


def _asked(question: Callable[[], Out]) -> Out:
    try:
        return question()
    except errors.APIError as error:
        raise _refused(error) from error
    except httpx.TransportError as error:
        raise _unreachable(error) from error


def _refused(error: errors.APIError) -> EngineError:
    words = f"{error.message or error.status} ({error.code})"
    if error.code == _TOO_MANY:
        return EngineError(FailureKind.ENGINE, f"the quota of the Gemini API is used up: {words}")
    if error.code >= _SERVER:
        return EngineError(FailureKind.IO, f"the Gemini API failed: {words}")
    return RequestRefusedError(words)


def _of_operation(error: dict[str, Any]) -> EngineError:
    """What went wrong after the request was taken, in google.rpc codes: 8 is a quota, 13 and 14 are the server's own."""
    code, words = error.get("code"), f"{error.get('message', error)}"
    if code == 8:
        return EngineError(FailureKind.ENGINE, f"the quota of the Gemini API is used up: {words}")
    if code in {13, 14}:
        return EngineError(FailureKind.IO, f"the Gemini API failed: {words}")
    return RequestRefusedError(words)


def _unreachable(error: httpx.TransportError) -> EngineError:
    return EngineError(FailureKind.IO, f"the Gemini API is not reached: {type(error).__name__}: {error}")


def _delay_s(error: errors.APIError) -> float | None:
    """When to come again, if the API says so (google.rpc.RetryInfo)."""
    if error.code != _TOO_MANY or not isinstance(error.details, dict):
        return None
    for detail in error.details.get("error", {}).get("details", []):
        match = _DELAY.fullmatch(str(detail.get("retryDelay", "")))
        if match:
            return float(match[1])
    return None
