"""Single frames of a job as JPEG, from its finished video, or from its piece while there is none yet."""

import io
from fractions import Fraction

import av
from av.error import FFmpegError

from infra.objects import BlobError, Objects
from infra.web.console.facts import Facts
from infra.web.view import Job
from schemas.records import Blob, VideoFormat

_LINK_S = 300
_QUALITY = 88


class StillError(Exception):
    """There is no such picture."""


def still(objects: Objects, job: Job, facts: Facts, frame: int) -> bytes:
    """The picture of a frame of the job's timeline. Raises: StillError."""
    if job.video:
        return _decoded(objects, job.video.video, frame, job.video.format)
    for piece in facts.pieces:
        first = int(piece["start_frame"])
        if piece["video_uri"] and job.changed and first <= frame < first + int(piece["frames"]):
            blob = Blob(uri=piece["video_uri"], digest="", size_bytes=0, media_type="video/mp4")
            return _decoded(objects, blob, frame - first, job.changed.format)
    raise StillError(f"no picture of frame {frame} yet")


def _decoded(objects: Objects, blob: Blob, frame: int, form: VideoFormat) -> bytes:
    try:
        local = blob.uri.startswith("file:")
        source = str(objects.local_path(objects.key_of(blob))) if local else objects.link(blob, _LINK_S)
        return _picture(source, frame, Fraction(form.fps_num, form.fps_den))
    except (BlobError, FFmpegError, OSError) as error:
        raise StillError(f"frame {frame} cannot be shown: the object is gone, or is no video") from error


def _picture(source: str, frame: int, rate: Fraction) -> bytes:
    with av.open(source) as container:
        stream = container.streams.video[0]
        base = stream.time_base
        if base is None:
            raise StillError("a video without a clock")
        start = stream.start_time or 0
        container.seek(start + round(frame / rate / base), stream=stream)
        earliest = start + (frame - Fraction(1, 2)) / rate / base
        for picture in container.decode(stream):
            if picture.pts is not None and picture.pts >= earliest:
                buffer = io.BytesIO()
                picture.to_image().save(buffer, "JPEG", quality=_QUALITY)
                return buffer.getvalue()
    raise StillError(f"the video ends before frame {frame}")
