"""longtake.pieces.v1 -> longtake.pieces.checked.v1; longtake.segments.v1 and rejected seams only become rows.

A piece is measured, its rows are in ClickHouse and its verdict is in the object store before the verdict is announced.
A worker that dies in between measures again or finds the verdict; the rows are there once either way.
"""

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import msgspec

from infra.bus.clients import Member
from infra.bus.message import Message
from infra.bus.process import stop_on_signals
from infra.bus.requests import recalled
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.inserts import Database
from infra.objects import BlobError
from infra.settings import Settings
from qc_consumers.baselines import following
from qc_consumers.check import Bench, Check, Measured, bench_of, checked, unreadable
from qc_consumers.gates import Claim, file_evidence, reference_evidence, score_evidence, worst
from qc_consumers.incoming import Origin, manifest_key, opened, unexpected
from qc_consumers.look import compare, look
from qc_consumers.metrics.packets import PacketScan, UnreadableError, scan_packets
from qc_consumers.metrics.quality import Pair, QualityError
from qc_consumers.metrics.scores import scores_of
from qc_consumers.profile import Profile, profile_for
from qc_consumers.proof import proof_of_piece
from qc_consumers.renditions import with_piece_renditions
from qc_consumers.rows import failure_rows, piece_rows, rejection_rows, segment_rows
from qc_consumers.takes import seen_of
from qc_consumers.usual import departures, population_of
from schemas.codec import encode
from schemas.records import (
    PieceChecked,
    PieceStitched,
    SeamRejected,
    SegmentFailed,
    SegmentGenerated,
    Verdict,
)
from schemas.topics import Event

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Serve the topics until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    member = Member(role="check-pieces", topics=(PieceStitched.topic, SegmentGenerated.topic), slot=slot)
    with closing(Database(settings)) as database, following(settings) as baselines:
        bench = replace(bench_of(settings, database, member.name), baselines=baselines)
        work = ThreadWork(CheckPieces(bench), settings.slots)
        run_worker(settings, member, work, stop_on_signals())


class CheckPieces:
    """Handler of `longtake.pieces.v1` and `longtake.segments.v1`. Waits while ClickHouse is away."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __call__(self, message: Message) -> Sequence[Event]:
        """The PieceChecked of a stitched piece, nothing for the others. Raises: BadInputError, ClosedError."""
        event, origin = opened(message)
        match event:
            case PieceStitched():
                return (self._checked(event, origin),)
            case SeamRejected():
                self._bench.insert(*rejection_rows(event, origin))
            case SegmentGenerated():
                self._bench.insert(segment_rows(event, origin))
            case SegmentFailed():
                self._bench.insert(failure_rows(event, origin))
            case _:
                raise unexpected(event, message.topic)
        return ()

    def _checked(self, event: PieceStitched, origin: Origin) -> PieceChecked:
        bench, manifest = self._bench, manifest_key(event)
        if known := recalled(bench.objects, manifest, (PieceChecked,)):
            return known
        check = check_piece(event, bench)
        bench.insert(*piece_rows(event, check, origin))
        scores, findings = check.measured.scores, check.measured.findings
        answer = PieceChecked(
            job_id=event.job_id,
            piece=event.piece,
            attempt=event.attempt,
            request_hash=event.request_hash,
            verdict=worst(findings),
            findings=findings,
            scores=scores,
            checked_us=check.checked_us,
            worker=bench.worker,
            population=check.measured.population,
        )
        if answer.verdict is Verdict.PASS and (facts := check.measured.facts):
            seen = msgspec.msgpack.encode(seen_of(event, facts.impressions))
            bench.objects.put_manifest(proof_of_piece(event, facts.scan), seen)
        bench.objects.put_manifest(manifest, encode(answer))
        log.info(
            "piece checked job_id=%s piece=%d attempt=%d verdict=%s vmaf=%.2f psnr_y=%.2f took_ms=%d",
            *(event.job_id, event.piece, event.attempt, answer.verdict),
            *(scores.vmaf_mean, scores.psnr_y_mean, check.took_us // 1000),
        )
        return answer


def check_piece(event: PieceStitched, bench: Bench) -> Check:
    """Measure a piece and judge it. What is missing or broken in it is a finding, not an exception."""
    return checked(bench, lambda folder: with_piece_renditions(_measured(event, bench, folder), event, bench, folder))


def _measured(event: PieceStitched, bench: Bench, folder: Path) -> Measured:
    claim = Claim(
        start_frame=event.start_frame, frames=event.frames, format=event.format, designed=event.designed_frames
    )
    try:
        piece, reference = bench.objects.get_file(event.video, folder), bench.objects.get_file(event.reference, folder)
        scan, reference_scan = scan_packets(piece), scan_packets(reference)
    except (BlobError, UnreadableError) as error:
        return Measured(findings=tuple(profile_for(bench.profiles, 0).judged([unreadable(error)])))
    profile = profile_for(bench.profiles, scan.transfer)
    pair = _pair(event, piece, reference)
    wrong = list(reference_evidence(pair, reference_scan))
    if not wrong and _is_whole(pair, scan):
        try:
            measured = _compared(pair, scan, claim, folder, profile, bench.threads)
            return _held_against(measured, population_of(event, profile), bench, profile)
        except QualityError as error:
            wrong = [unreadable(error)]
    facts = look(piece, scan, claim, profile, bench.threads)
    return Measured(findings=tuple(profile.judged([*file_evidence(facts, profile), *wrong])), facts=facts)


def _compared(pair: Pair, scan: PacketScan, claim: Claim, folder: Path, profile: Profile, threads: int) -> Measured:
    facts, quality = compare(pair, scan, claim, folder, profile, threads)
    scores = scores_of(quality, claim.fps)
    evidence = (*file_evidence(facts, profile), *score_evidence(scores, quality, claim))
    return Measured(findings=tuple(profile.judged(evidence)), facts=facts, quality=quality, scores=scores)


def _held_against(measured: Measured, population: str, bench: Bench, profile: Profile) -> Measured:
    """With what is said of it against pieces like it."""
    found = departures(measured.scores, bench.baselines.of(population), profile)
    return replace(measured, findings=(*measured.findings, *found), population=population)


def _is_whole(pair: Pair, scan: PacketScan) -> bool:
    """Whether frame n of the piece can be frame n of the reference: if not, scores would be those of other pictures."""
    return len(scan.packets) == pair.frames and (scan.width, scan.height) == (pair.width, pair.height)


def _pair(event: PieceStitched, piece: Path, reference: Path) -> Pair:
    return Pair(
        piece=piece,
        reference=reference,
        width=event.format.width,
        height=event.format.height,
        fps=Fraction(event.format.fps_num, event.format.fps_den),
        frames=event.frames,
        head=event.reference_head_context,
        tail=event.reference_tail_context,
    )
