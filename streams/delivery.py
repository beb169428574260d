"""longtake.pieces.checked.v1, longtake.videos.checked.v1 -> longtake.videos.finished.v1, rework, or the end of the job.

A verdict may be read before the piece or video it is about, because they come from different topics: it is kept.
"""

from bisect import bisect_right
from dataclasses import replace

from schemas.records import Finding, JobState, PieceChecked, Rework, Stage, Verdict, VideoChecked
from streams.assembly import assembled_when_checked
from streams.finishing import finished
from streams.jobs import Rules, Step, failed, piece_current, plan_of, reopened, varied, with_piece
from streams.requests import ask_assembly
from streams.rework import pieces_lost, reencoded, regenerated

LOST_GATE = "blob"
"""Of a finding about a file that is gone or damaged in the store."""
_MAX_WARNINGS = 3
_MAX_REWORKS = 100
_MAX_DETAIL_CHARS = 100
"""Of each piece and of the video: rows are small. ClickHouse has all of it."""


def piece_checked(job: JobState, event: PieceChecked, now_us: int, rules: Rules) -> Step | None:
    """Pass, encode again, generate again, stitch again what the store has lost, or give up."""
    index = event.piece
    if not piece_current(job, index, event.attempt) or job.pieces[index].checked:
        return None
    match event.verdict:
        case Verdict.PASS:
            job = with_piece(job, index, checked=True, scores=event.scores, warnings=_kept(event.findings))
            return assembled_when_checked(job, now_us)
        case Verdict.QUARANTINE if lost := _lost(event.findings):
            return pieces_lost(job, [index], lost.detail, now_us, rules)
        case Verdict.REENCODE if job.pieces[index].reencodes < rules.reencodes:
            return reencoded(_sent_back(job, event, index), index, now_us)
        case Verdict.REGENERATE if job.reworks < rules.reworks:
            job = replace(_sent_back(job, event, index), reworks=job.reworks + 1)
            return regenerated(varied(job, index), index, now_us)
        case verdict:
            return failed(job, f"piece {index}: {_said(verdict, event.findings)}")


def video_checked(job: JobState, event: VideoChecked, now_us: int, rules: Rules) -> Step | None:
    """Finish, rework once the piece that a finding names or the assembly, or give up."""
    waiting = job.stage in (Stage.ASSEMBLING, Stage.CHECKING)
    if not waiting or event.attempt != job.assembly.attempt or job.assembly.checked:
        return None
    if event.verdict is Verdict.PASS:
        assembly = replace(job.assembly, checked=True, warnings=_kept(event.findings))
        job = replace(job, assembly=assembly)
        return finished(job, now_us) if assembly.video else (job, ())
    if job.reworks >= rules.reworks:
        return failed(job, f"video: {_said(event.verdict, event.findings)}")
    job = replace(job, reworks=job.reworks + 1)
    finding = _worst(event.verdict, event.findings)
    if finding is None or not 0 <= finding.frame < plan_of(job).frames:
        job, request = ask_assembly(reopened(_sent_back(job, event, -1)), now_us)
        return job, (request,)
    index = _piece_at(job, finding.frame)
    job = _sent_back(job, event, index)
    if event.verdict is Verdict.REGENERATE:
        return regenerated(varied(job, index), index, now_us)
    return reencoded(job, index, now_us)


def _sent_back(job: JobState, event: PieceChecked | VideoChecked, index: int) -> JobState:
    """The row remembers it, for who gets the video."""
    finding = _worst(event.verdict, event.findings)
    if finding is None:
        return job
    (kept,) = _kept((finding,))
    rework = Rework(verdict=event.verdict, index=index, attempt=event.attempt, finding=kept)
    return replace(job, reworked=(*job.reworked, rework)[-_MAX_REWORKS:])


def _lost(findings: tuple[Finding, ...]) -> Finding | None:
    """Nothing was measured: the store had no such file, or not its bytes."""
    return next((finding for finding in findings if finding.gate == LOST_GATE), None)


def _piece_at(job: JobState, frame: int) -> int:
    """A title card belongs to the first."""
    return max(0, bisect_right([segment.start_frame for segment in plan_of(job).segments], frame) - 1)


def _kept(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(replace(finding, detail=finding.detail[:_MAX_DETAIL_CHARS]) for finding in findings[:_MAX_WARNINGS])


def _worst(verdict: Verdict, findings: tuple[Finding, ...]) -> Finding | None:
    return next((finding for finding in findings if finding.verdict is verdict), None)


def _said(verdict: Verdict, findings: tuple[Finding, ...]) -> str:
    finding = _worst(verdict, findings)
    if finding is None:
        return f"{verdict} without a finding"
    where = f" at frame {finding.frame}" if finding.frame >= 0 else ""
    detail = f" ({finding.detail})" if finding.detail else ""
    return f"{verdict}: {finding.gate} is {finding.value:g}, limit {finding.limit:g}{where}{detail}"
