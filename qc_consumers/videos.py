"""longtake.videos.v1 -> longtake.videos.checked.v1; longtake.videos.finished.v1, jobs.v1 and qoe.v1 only become rows.

Every frame was decoded and scored in its piece, with its neighbours across the border in view, and pieces are joined by
copying. What is left to check is what joining can break: the container, the clock, the borders, and that the packets are
those of the pieces. So the time hardly grows with the length. What is not known from its pieces is decoded from end to end.
"""

import logging
from collections.abc import Sequence
from contextlib import closing
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
from qc_consumers.check import Bench, Check, Measured, bench_of, checked, unreadable
from qc_consumers.gates import Claim, Facts, Seen, file_evidence, worst
from qc_consumers.incoming import Origin, manifest_key, opened, unexpected
from qc_consumers.look import look
from qc_consumers.metrics.container import scan_container
from qc_consumers.metrics.packets import PacketScan, UnreadableError, scan_packets
from qc_consumers.profile import profile_for
from qc_consumers.proof import proofs_of_video
from qc_consumers.renditions import with_video_renditions
from qc_consumers.rows import finish_rows, job_rows, play_rows, video_rows
from qc_consumers.sound import sound_evidence
from qc_consumers.takes import Seen as SeenPiece
from qc_consumers.takes import take_evidence
from qc_consumers.video_gates import container_evidence, timeline_evidence
from schemas.codec import encode
from schemas.records import AssemblyFailed, JobChanged, PlayReported, VideoAssembled, VideoChecked, VideoFinished
from schemas.topics import Event

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Serve the topics until SIGTERM or SIGINT. Raises: BusError: start the process again."""
    member = Member(
        role="check-videos",
        topics=(VideoAssembled.topic, VideoFinished.topic, JobChanged.topic, PlayReported.topic),
        slot=slot,
    )
    with closing(Database(settings)) as database:
        work = ThreadWork(CheckVideos(bench_of(settings, database, member.name)), settings.slots)
        run_worker(settings, member, work, stop_on_signals())


class CheckVideos:
    """Handler of `longtake.videos.v1`, `longtake.videos.finished.v1`, `longtake.jobs.v1`, `longtake.qoe.v1`. Waits while ClickHouse is away."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __call__(self, message: Message) -> Sequence[Event]:
        """The VideoChecked of an assembled video, nothing for the others. Raises: BadInputError, ClosedError."""
        event, origin = opened(message)
        match event:
            case VideoAssembled():
                return (self._checked(event, origin),)
            case VideoFinished():
                self._bench.insert(finish_rows(event, origin))
            case JobChanged():
                self._bench.insert(job_rows(event, origin))
            case PlayReported():
                self._bench.insert(play_rows(event, origin))
            case AssemblyFailed():
                pass
            case _:
                raise unexpected(event, message.topic)
        return ()

    def _checked(self, event: VideoAssembled, origin: Origin) -> VideoChecked:
        bench, manifest = self._bench, manifest_key(event)
        if known := recalled(bench.objects, manifest, (VideoChecked,)):
            return known
        check = check_video(event, bench)
        bench.insert(video_rows(event, check, origin))
        findings = check.measured.findings
        answer = VideoChecked(
            job_id=event.job_id,
            attempt=event.attempt,
            request_hash=event.request_hash,
            verdict=worst(findings),
            findings=findings,
            checked_us=check.checked_us,
            worker=bench.worker,
        )
        bench.objects.put_manifest(manifest, encode(answer))
        log.info(
            "video checked job_id=%s attempt=%d verdict=%s frames=%d took_ms=%d",
            *(event.job_id, event.attempt, answer.verdict, event.frames, check.took_us // 1000),
        )
        return answer


def check_video(event: VideoAssembled, bench: Bench) -> Check:
    """Measure a video and judge it. What is missing or broken in it is a finding, not an exception."""
    return checked(bench, lambda folder: with_video_renditions(_measured(event, bench, folder), event, bench, folder))


def _measured(event: VideoAssembled, bench: Bench, folder: Path) -> Measured:
    claim = Claim(start_frame=0, frames=event.frames, format=event.format, designed=event.designed_frames)
    try:
        video = bench.objects.get_file(event.video, folder)
        container = scan_container(video)
        scan = scan_packets(video)
    except (BlobError, UnreadableError) as error:
        return Measured(findings=tuple(profile_for(bench.profiles, 0).judged([unreadable(error)])))
    profile = profile_for(bench.profiles, scan.transfer)
    pieces = _seen(event, scan, bench)
    if pieces:
        facts = Facts(claim=claim, scan=scan, pictures=None, seen=Seen())
    else:
        log.info("video not made of checked pieces, decoded job_id=%s attempt=%d", event.job_id, event.attempt)
        facts = look(video, scan, claim, profile, bench.threads)
    evidence = (
        *container_evidence(event, container),
        *timeline_evidence(event, facts, container),
        *file_evidence(facts, profile),
        *take_evidence(pieces or _uncut(facts), float(claim.fps), profile),
        *sound_evidence(event, video, folder, container, profile),
    )
    return Measured(findings=tuple(profile.judged(evidence)), facts=facts, container=container)


def _seen(event: VideoAssembled, scan: PacketScan, bench: Bench) -> list[SeenPiece]:
    """What the checks of the pieces have seen, if the video is made of them and of nothing else; otherwise nothing."""
    known = [bench.objects.get_manifest(proof) for proof in proofs_of_video(event, scan)]
    return [msgspec.msgpack.decode(manifest, type=SeenPiece) for manifest in known if manifest] if all(known) else []


def _uncut(facts: Facts) -> list[SeenPiece]:
    """Half seconds of a video of which the cuts are not known: a take each, but for what is the same picture."""
    return [SeenPiece(begins_take=False, impressions=(each,)) for each in facts.impressions]
