"""The piece, its reference and its renditions: the same pictures, as they are delivered, without loss, and for other devices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from schemas.records import PieceRequested, PlannedCard
from streams.mp4 import CodedVideo, clock_of, examine
from streams.stitcher.dressing import Dressing
from streams.stitcher.encode import REFERENCE, Encoder, h264, piece_options
from streams.stitcher.join import Join
from streams.stitcher.ladder import Ladder, Rung
from streams.stitcher.picture import Frame, rounded
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a piece shows besides its segment."""

    dressing: Dressing
    cards: Sequence[tuple[PlannedCard, Frame]]


def make_piece(
    request: PieceRequested, join: Join, previous: Placed | None, look: Look, folder: Path, now_us: Callable[[], int]
) -> Piece:
    """Encode what `join` decided, in `folder`. Raises: BadInputError for parameters the encoder would not take."""
    before = previous if previous is not None and previous.shows(-1) else None
    tail = request.tail_overlap > 0
    made, drawn_us = _Made(request, join, look), now_us()
    video, reference = folder / "piece.mp4", folder / "reference.mp4"
    with (
        Encoder(video, request.format, h264(piece_options(request.encode)), now_us) as delivered,
        Encoder(reference, request.format, h264(REFERENCE), now_us) as lossless,
        Ladder(request, folder, now_us) as ladder,
    ):
        if before:
            lossless.write(look.dressing.over(request.start_frame - 1, rounded(before.picture(-1))))
        for picture in made.pictures():
            delivered.write(picture)
            lossless.write(picture)
            ladder.write(picture)
        if tail:
            end = request.start_frame + request.frames
            lossless.write(look.dressing.over(end, rounded(join.new.picture(made.own))))
        lossless.finish()
        encoded_us = delivered.finish()
        renditions = ladder.finish()
    coded = examine(video, clock_of(request.format))
    if coded.frames != request.frames:
        raise RuntimeError(f"{request.job_id} piece {request.piece}: {coded.frames} frames encoded of {request.frames}")
    generated_us, decoded_us = _made_us(made.own, join, previous)
    return Piece(
        video=video,
        reference=reference,
        head_context=1 if before else 0,
        tail_context=1 if tail else 0,
        coded=coded,
        generated_us=made.with_cards(generated_us, drawn_us),
        decoded_us=made.with_cards(decoded_us, drawn_us),
        encoded_us=encoded_us,
        renditions=renditions,
    )


class _Made:
    """The pictures of a piece in order: a card, its segment's own frames, a card."""

    def __init__(self, request: PieceRequested, join: Join, look: Look) -> None:
        self._start, self._join, self._look = request.start_frame, join, look
        self._before = [each for each in look.cards if each[0].start_frame == request.start_frame]
        self._behind = [each for each in look.cards if each[0].start_frame != request.start_frame]
        self.own = request.frames - sum(card.frames for card, _ in look.cards)
        """Frames of the segment."""

    def pictures(self) -> Iterator[Frame]:
        """All of them, as they are seen."""
        return (self._look.dressing.over(self._start + n, picture) for n, picture in enumerate(self._bare()))

    def with_cards(self, times_us: tuple[int, ...], drawn_us: int) -> tuple[int, ...]:
        """Times of the segment's own frames, with those of the cards."""
        before, behind = (sum(card.frames for card, _ in cards) for cards in (self._before, self._behind))
        return (drawn_us,) * before + times_us + (drawn_us,) * behind

    def _bare(self) -> Iterator[Frame]:
        for card, picture in self._before:
            yield from repeat(picture, card.frames)
        blended = self._join.blend.pictures
        for j in range(self.own):
            yield blended[j] if j < len(blended) else rounded(self._join.new.picture(j))
        for card, picture in self._behind:
            yield from repeat(picture, card.frames)


def _made_us(frames: int, join: Join, previous: Placed | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """When each frame was generated and decoded; where two are blended, the newer one."""
    shown = [
        previous if previous is not None and j < len(join.blend.weights) and join.blend.weights[j] == 0 else join.new
        for j in range(frames)
    ]
    generated = tuple(int(side.segment.generated_us[side.index(j)]) for j, side in enumerate(shown))
    return generated, tuple(int(side.segment.decoded_us[side.index(j)]) for j, side in enumerate(shown))
