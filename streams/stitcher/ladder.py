"""The renditions of a piece: one encoder each, fed with the pictures of the piece while they are in hand."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from schemas.records import PieceRequested, Rendition
from streams.encoding.coding import coding_of
from streams.mp4 import CodedVideo, clock_of, examine
from streams.stitcher.encode import Encoder
from streams.stitcher.picture import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One rendition of the piece, as a file."""

    rendition: Rendition
    path: Path
    coded: CodedVideo


class Ladder(AbstractContextManager["Ladder"]):
    """All renditions that a request for a piece asks for, in `folder`; none if it asks for none."""

    def __init__(self, request: PieceRequested, folder: Path, now_us: Callable[[], int]) -> None:
        self._request = request
        self._files = [folder / f"rendition-{index}.mp4" for index in range(len(request.renditions))]
        with ExitStack() as stack:
            self._encoders = [
                stack.enter_context(
                    Encoder(
                        path,
                        replace(request.format, width=rendition.width, height=rendition.height),
                        coding_of(rendition),
                        now_us,
                    )
                )
                for rendition, path in zip(request.renditions, self._files, strict=True)
            ]
            self._stack = stack.pop_all()

    def write(self, picture: Frame) -> None:
        """The next picture of the piece, [H * 3 / 2, W] uint8 (I420)."""
        for encoder in self._encoders:
            encoder.write(picture)

    def finish(self) -> tuple[Rung, ...]:
        """Close the files. Raises: RuntimeError if an encoder lost a frame; CodedVideoError if it did not do as it was told."""
        for encoder in self._encoders:
            encoder.finish()
        return tuple(map(self._rung, self._request.renditions, self._files))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _rung(self, rendition: Rendition, path: Path) -> Rung:
        coded = examine(path, clock_of(self._request.format), rendition.codec)
        if coded.frames != self._request.frames:
            raise RuntimeError(f"{rendition.name}: {coded.frames} frames encoded of {self._request.frames}")
        return Rung(rendition=rendition, path=path, coded=coded)
