"""Black frames: ffmpeg's `blackdetect=pix_th=0.10:pic_th=0.98`, one frame is enough."""

import numpy as np

from qc_consumers.detectors import Picture, Span

BLACK_LEVEL = int(16 + 0.10 * (235 - 16))


class Black:
    """Runs of frames of which more than `share` of the pixels are black. The value is the share of black pixels."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._spans: list[Span] = []

    def process_frame(self, picture: Picture) -> None:
        share = float(np.count_nonzero(picture.luma <= BLACK_LEVEL)) / picture.luma.size
        if share <= self._share:
            return
        last = self._spans[-1] if self._spans else None
        if last and last.first + last.frames == picture.frame:
            self._spans[-1] = Span(first=last.first, frames=last.frames + 1, value=max(last.value, share))
        else:
            self._spans.append(Span(first=picture.frame, frames=1, value=share))

    def post_process(self) -> tuple[Span, ...]:
        return tuple(self._spans)
