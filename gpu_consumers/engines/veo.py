"""Veo through the Gemini API: pixels only. A take is one clip that the API makes longer and longer.

What is stored as latents is the clip as it came, with its address: the API extends a clip by its address (720p, for two days
after its last use, up to 148 s). Where it does not, the take goes on from its last picture, in a new clip whose first frame
repeats that picture. The API takes no seed: the same request gives another clip, and costs again.

Axes: latents [bytes, 1, 1, 1] uint8.
"""

import io
import json
import logging
import struct
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass

import av
import numpy as np
from google import genai
from google.genai import types
from PIL import Image

from gpu_consumers.engines.clip_options import VeoOptions, veo_options
from gpu_consumers.engines.engine import EngineError, Frames, Latents
from gpu_consumers.engines.shots import begins_take, text_of
from gpu_consumers.engines.veo_api import FPS, LENGTHS_S, LONGEST_S, RequestRefusedError, VeoApi
from schemas.errors import BadInputError
from schemas.records import FailureKind, SegmentRequested, VideoFormat

_VERSION = "1"
log = logging.getLogger(__name__)
_ASPECTS = {"16:9": 16 / 9, "9:16": 9 / 16}
_ASPECT_TOLERANCE = 0.01
_HD = 720
_HEADER = struct.Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """A take as far as it has come. Its first frame is `start_frame` of the timeline."""

    uri: str
    start_frame: int
    frames: int
    mp4: bytes

    @property
    def end_frame(self) -> int:
        """The frame behind its last."""
        return self.start_frame + self.frames


class VeoEngine:
    """One per process. `poll_s`: how often the API is asked whether a clip is done."""

    def __init__(self, poll_s: float = 10.0) -> None:
        self._api = VeoApi(poll_s)

    @property
    def name(self) -> str:
        """As in requests."""
        return "veo"

    @property
    def version(self) -> str:
        """Of this engine; the model is in the job's options, and the API changes as it likes."""
        return f"{_VERSION}-google-genai{genai.__version__}"

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "VeoState":
        """`latents`: the clip of the segment before, if there is one."""
        return VeoState(self._api, _unpacked(latents[-1]) if latents and not begins_take(request) else None)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


class VeoState:
    """One job's take."""

    def __init__(self, api: VeoApi, clip: Clip | None) -> None:
        self._api, self._clip = api, clip

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """The take's clip, long enough for the segment, at once; empty chunks while the API works. Raises: EngineError."""
        options, config = _options(request), _config(request)
        clip = None if begins_take(request) else self._clip
        if clip is None and not begins_take(request):
            raise EngineError(FailureKind.STATE_MISSING, f"no clip before segment {request.segment}")
        if clip and not clip.start_frame < request.start_frame <= clip.end_frame:
            raise EngineError(FailureKind.STATE_MISSING, f"the take is at frame {clip.end_frame}")
        end = request.start_frame + request.frames
        if clip is None or clip.end_frame < end:
            clip = yield from _beating(self._longer(request, clip, options, config))
        if clip.end_frame < end:
            raise EngineError(FailureKind.WRONG_FRAME_COUNT, f"the clip ends at frame {clip.end_frame} of {end}")
        self._clip = clip
        yield _packed(clip)

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """The segment's frames out of the clip, in the size that was asked for."""
        clip = _unpacked(latents)
        first = request.start_frame - clip.start_frame
        size = (request.format.width, request.format.height)
        return np.stack(list(_pictures(clip.mp4, first, first + request.frames, size)))

    def _longer(
        self, request: SegmentRequested, clip: Clip | None, options: VeoOptions, config: types.GenerateVideosConfig
    ) -> Generator[None, None, Clip]:
        """The next clip of the take: its first, the same one extended, or one that goes on from a picture."""
        text = text_of(request)
        if clip and _extends(clip, config):
            video = types.Video(uri=clip.uri, mime_type="video/mp4")
            source = types.GenerateVideosSource(prompt=text, video=video)
            try:
                uri, mp4 = yield from self._api.clip(options.model, source, config)
                return Clip(uri=uri, start_frame=clip.start_frame, frames=_count(mp4), mp4=mp4)
            except RequestRefusedError as error:
                log.info("%s segment %d: goes on from a picture: %s", request.job_id, request.segment, error.reason)
        start, image = request.start_frame, None
        if clip:
            start -= 1
            image = _image(clip.mp4, start - clip.start_frame)
        source = types.GenerateVideosSource(prompt=text, image=image)
        needed = request.start_frame + request.frames - start
        lengthy = config.model_copy(update={"duration_seconds": _length_s(needed, config)})
        uri, mp4 = yield from self._api.clip(options.model, source, lengthy)
        return Clip(uri=uri, start_frame=start, frames=_count(mp4), mp4=mp4)


def _extends(clip: Clip, config: types.GenerateVideosConfig) -> bool:
    return config.resolution == "720p" and clip.frames <= LONGEST_S * FPS and bool(clip.uri)


def _length_s(frames: int, config: types.GenerateVideosConfig) -> int:
    """Seconds of a new clip: the least that holds the frames; above 720p there is one length only."""
    enough = [length for length in LENGTHS_S if length * FPS >= frames]
    return enough[0] if enough and config.resolution == "720p" else LENGTHS_S[-1]


def _config(request: SegmentRequested) -> types.GenerateVideosConfig:
    """What the API is told besides the text. Raises: EngineError for formats it does not make."""
    wanted, options = request.format, _options(request)
    if wanted.fps_num != FPS * wanted.fps_den:
        raise _refused(f"Veo makes {FPS} frames per second, not {wanted.fps_num}/{wanted.fps_den}")
    return types.GenerateVideosConfig(
        number_of_videos=1,
        aspect_ratio=_aspect(wanted),
        resolution="720p" if min(wanted.width, wanted.height) <= _HD else "1080p",
        negative_prompt=", ".join(request.negative) or None,
        person_generation=options.people,
    )


def _aspect(wanted: VideoFormat) -> str:
    for name, ratio in _ASPECTS.items():
        if abs(wanted.width / wanted.height / ratio - 1) <= _ASPECT_TOLERANCE:
            return name
    raise _refused(f"Veo makes 16:9 and 9:16, not {wanted.width}x{wanted.height}")


def _options(request: SegmentRequested) -> VeoOptions:
    try:
        return veo_options(request.engine_options)
    except BadInputError as error:
        raise _refused(str(error)) from error


def _packed(clip: Clip) -> Latents:
    header = json.dumps({key: value for key, value in asdict(clip).items() if key != "mp4"}).encode()
    return np.frombuffer(_HEADER.pack(len(header)) + header + clip.mp4, np.uint8).reshape(-1, 1, 1, 1)


def _unpacked(latents: Latents) -> Clip:
    """Raises: EngineError (STATE_MISSING) if it is no clip."""
    content = np.asarray(latents).tobytes()
    try:
        (length,) = _HEADER.unpack_from(content)
        header = json.loads(content[_HEADER.size : _HEADER.size + length])
        return Clip(**header, mp4=content[_HEADER.size + length :])
    except (struct.error, ValueError, TypeError) as error:
        raise EngineError(FailureKind.STATE_MISSING, f"the latents are no clip: {error}") from error


def _count(mp4: bytes) -> int:
    with av.open(io.BytesIO(mp4), "r") as container:
        return sum(1 for packet in container.demux(video=0) if packet.size)


def _pictures(mp4: bytes, first: int, end: int, size: tuple[int, int]) -> Iterator[Frames]:
    """Frames [first, end) of a clip, [H, W, 3]."""
    with av.open(io.BytesIO(mp4), "r") as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index >= end:
                return
            if index >= first:
                yield (
                    frame.reformat(width=size[0], height=size[1], format="rgb24")
                    .to_ndarray()
                    .astype(np.uint8, copy=False)
                )


def _image(mp4: bytes, frame: int) -> types.Image:
    with av.open(io.BytesIO(mp4), "r") as container:
        stream = container.streams.video[0]
        (picture,) = _pictures(mp4, frame, frame + 1, (stream.width, stream.height))
    png = io.BytesIO()
    Image.fromarray(picture).save(png, "PNG")
    return types.Image(image_bytes=png.getvalue(), mime_type="image/png")


def _beating(work: Generator[None, None, Clip]) -> Generator[Latents, None, Clip]:
    """The same work; its pauses are empty chunks."""
    try:
        while True:
            next(work)
            yield np.empty((0, 1, 1, 1), np.uint8)
    except StopIteration as done:
        return done.value


def _refused(reason: str) -> EngineError:
    return EngineError(FailureKind.ENGINE, reason, retryable=False)
