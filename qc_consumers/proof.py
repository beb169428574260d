"""Pieces that decoded without an error, by content: a video that is joined from them by copying decodes too.

A piece begins with an IDR picture and refers to nothing outside itself. So the same packets, in the same order and with the
same steps between them, behind the same decoder configuration, give the same pictures wherever they stand.
"""

from itertools import pairwise

import xxhash

from qc_consumers.metrics.packets import PacketScan
from schemas.records import PieceStitched, VideoAssembled


def proof_of_piece(event: PieceStitched, scan: PacketScan) -> str:
    """The manifest that says that these packets are this piece of this job, and decode."""
    return _proof(event.job_id, event.start_frame, scan, 0, len(scan.packets))


def proofs_of_video(event: VideoAssembled, scan: PacketScan) -> list[str]:
    """The manifests that there are if the video is made of its pieces and of nothing else."""
    borders = [*event.piece_starts, len(scan.packets)]
    return [_proof(event.job_id, first, scan, first, end) for first, end in pairwise(borders)]


def _proof(job_id: str, start_frame: int, scan: PacketScan, first: int, end: int) -> str:
    packets = scan.packets[first:end]
    origin = min((packet.pts for packet in packets), default=0)
    digest = xxhash.xxh3_128(f"{job_id}/{start_frame}/".encode() + scan.config)
    for packet in packets:
        digest.update(packet.digest)
        digest.update(str((packet.pts - origin) * scan.time_base).encode())
    return f"seen-{digest.hexdigest()}"
