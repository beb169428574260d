"""The piece, its reference and its renditions: the same pictures, as they are delivered, without loss, and for other devices."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from schemas.records import PieceRequested
from streams.mp4 import CodedVideo, clock_of, examine
from streams.stitcher.encode import REFERENCE, Encoder, h264, piece_options
from streams.stitcher.join import Join
from streams.stitcher.ladder import Ladder, Rung
from streams.stitcher.picture import rounded
from streams.stitcher.segment import Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The files and the history of each frame, in microseconds.

    The reference has up to one frame more on each side, exactly as the neighbouring pieces show it: without them VMAF's
    motion is wrong at the ends.
    """

    video: Path
    reference: Path
    head_context: int
    tail_context: int
    coded: CodedVideo
    generated_us: tuple[int, ...]
    decoded_us: tuple[int, ...]
    encoded_us: tuple[int, ...]
    renditions: tuple[Rung, ...]


def make_piece(
    request: PieceRequested, join: Join, previous: Placed | None, folder: Path, now_us: Callable[[], int]
) -> Piece:
    """Encode what `join` decided, in `folder`. Raises: BadInputError for parameters the encoder would not take."""
    before = previous if previous is not None and previous.shows(-1) else None
    tail = request.tail_overlap > 0
    video, reference = folder / "piece.mp4", folder / "reference.mp4"
    with (
        Encoder(video, request.format, h264(piece_options(request.encode)), now_us) as delivered,
        Encoder(reference, request.format, h264(REFERENCE), now_us) as lossless,
        Ladder(request, folder, now_us) as ladder,
    ):
        if before:
            lossless.write(rounded(before.picture(-1)))
        for j in range(request.frames):
            blended = j < len(join.blend.pictures)
            picture = join.blend.pictures[j] if blended else rounded(join.new.picture(j))
            delivered.write(picture)
            lossless.write(picture)
            ladder.write(picture)
        if tail:
            lossless.write(rounded(join.new.picture(request.frames)))
        lossless.finish()
        encoded_us = delivered.finish()
        renditions = ladder.finish()
    coded = examine(video, clock_of(request.format))
    if coded.frames != request.frames:
        raise RuntimeError(f"{request.job_id} piece {request.piece}: {coded.frames} frames encoded of {request.frames}")
    generated_us, decoded_us = _made_us(request.frames, join, previous)
    return Piece(
        video=video,
        reference=reference,
        head_context=1 if before else 0,
        tail_context=1 if tail else 0,
        coded=coded,
        generated_us=generated_us,
        decoded_us=decoded_us,
        encoded_us=encoded_us,
        renditions=renditions,
    )


def _made_us(frames: int, join: Join, previous: Placed | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """When each frame was generated and decoded; where two are blended, the newer one."""
    shown = [
        previous if previous is not None and j < len(join.blend.weights) and join.blend.weights[j] == 0 else join.new
        for j in range(frames)
    ]
    generated = tuple(int(side.segment.generated_us[side.index(j)]) for j, side in enumerate(shown))
    return generated, tuple(int(side.segment.decoded_us[side.index(j)]) for j, side in enumerate(shown))
