"""Flashes: a frame whose brightness jumps away from both its neighbours, which agree with each other."""

from qc_consumers.detectors import Picture, Span

FLASH_LEVELS = 12.0


class Flash:
    """Single frames brighter or darker than both neighbours. The value is half the second difference of mean luma, in levels."""

    def __init__(self) -> None:
        self._means: list[float] = []

    def process_frame(self, picture: Picture) -> None:
        self._means.append(picture.mean)

    def post_process(self) -> tuple[Span, ...]:
        spans: list[Span] = []
        for frame, (before, here, after) in enumerate(
            zip(self._means, self._means[1:], self._means[2:], strict=False), 1
        ):
            jump = here - (before + after) / 2
            if abs(jump) >= FLASH_LEVELS and abs(after - before) < abs(jump) / 4:
                spans.append(Span(first=frame, frames=1, value=jump))
        return tuple(spans)
