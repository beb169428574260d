"""The director's topics -> its decisions: each event goes to the one function that knows what it means. Neither Kafka nor a clock."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from infra.assets.catalogue import Catalogue
from infra.bus.decision import Decision
from infra.bus.letter import parse
from infra.bus.message import Message
from schemas import records as r
from schemas.codec import content_hash, decode, decode_prompt
from schemas.errors import BadInputError
from schemas.headers import traceparent_of
from schemas.rows import RESTING
from schemas.topics import DEAD_LETTERS, Event, key_of
from streams.assembly import assembly_failed, piece_stitched, seam_rejected, video_assembled
from streams.control import EARLY_US, cancelled, cancelled_early, retried
from streams.delivery import piece_checked, video_checked
from streams.intake import Instruct, new_job, planned
from streams.jobs import Rules, Step, changed, clipped
from streams.planner import segment_failed, segment_generated
from streams.queueing import JobQueue, Limits
from streams.releases.arms import arm_name, changed_encode, changed_prompt, concerning, is_candidate
from streams.requests import outstanding
from streams.starting import started
from streams.unanswered import put_aside
from streams.validation import check_job_id, refused, tenant_of

INPUTS = (
    r.PromptSubmitted.topic,
    r.CancelRequested.topic,
    r.SegmentGenerated.topic,
    r.PieceStitched.topic,
    r.PieceChecked.topic,
    r.VideoAssembled.topic,
    r.VideoChecked.topic,
    DEAD_LETTERS,
)
_NOTHING = Decision()
_MAX_ID_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecider:
    """The rules of the `jobs` table, as infra.bus.decision.Decider."""

    rules: Rules
    instruct: Instruct
    limits: Limits = field(default_factory=Limits)
    releases: Callable[[], Sequence[r.ReleaseChanged]] = tuple
    """As they are now. These two are inputs that are no arguments: a job is planned once, and its row keeps what came of them."""
    assets: Catalogue = field(default_factory=Catalogue)
    """What names of assets mean now."""

    def decide(self, message: Message, state: r.JobState | None, now_us: int) -> Decision:
        """The job after `message`. What the job has moved past, or knows already, changes nothing."""
        if message.topic == DEAD_LETTERS:
            return _decision(_put_aside(message, state), now_us)
        try:
            event = _event(message)
        except BadInputError as error:
            if message.topic == r.PromptSubmitted.topic and error.job_id:
                return _refusal(error, error.job_id, "", now_us)
            return Decision(refused=error)
        if isinstance(event, r.PromptSubmitted):
            return self._submit(event, message, state, now_us)
        if error := _wrong_key(event, message):
            return Decision(refused=error)
        if state is not None and state.plan:
            step = self._step(state, event, now_us)
            if step is None and isinstance(event, r.CancelRequested | r.RetryRequested):
                return Decision(events=(changed(state),))  # the answer: where the job is, and stays
            return _decision(step, now_us)
        return _unknown(event, now_us)

    def queue(self) -> JobQueue:
        """Who runs and who waits, of one partition: empty."""
        return JobQueue(self.limits)

    def start(self, state: r.JobState, now_us: int) -> Decision:
        """It is the job's turn."""
        return _decision(started(state, now_us), now_us)

    def refuse(self, message: Message, state: r.JobState, error: BadInputError, now_us: int) -> Decision:
        """There is no room for what `message` made of a job, `state`."""
        if message.topic == r.PromptSubmitted.topic:
            return _refusal(error, state.job_id, state.content_hash, now_us)
        return Decision(refused=error)

    def scan(self, states: Iterable[r.JobState], now_us: int) -> list[Decision]:
        """Ask again for what has no answer. The wait doubles: requests in a long queue do not pile up."""
        return [
            Decision(state=replace(job, rescanned_us=now_us), events=tuple(outstanding(job, now_us)))
            for job in states
            if job.stage not in RESTING and self._stale(job, now_us)
        ]

    def _stale(self, job: r.JobState, now_us: int) -> bool:
        wait_us = max(self.rules.stale_us, job.rescanned_us - job.changed_us)
        return now_us - max(job.changed_us, job.rescanned_us) >= wait_us

    def _submit(self, prompt: r.PromptSubmitted, message: Message, state: r.JobState | None, now_us: int) -> Decision:
        digest = _hash(prompt)
        try:
            check_job_id(prompt.job_id)
            if error := _wrong_key(prompt, message):
                raise error
            if state is None or state.plan is None:
                return self._accepted(prompt, message, state, now_us)
        except BadInputError as error:
            return _refusal(error, prompt.job_id, digest, now_us)
        if digest != state.content_hash:
            error = refused("job_id", "content", "a job of this id and other content was accepted before")
            return _refusal(error, prompt.job_id, digest, now_us)
        return Decision(events=(changed(state),))

    def _accepted(self, prompt: r.PromptSubmitted, message: Message, early: r.JobState | None, now_us: int) -> Decision:
        """A new job, which may have been cancelled already. Raises: BadInputError."""
        digest = _hash(prompt)
        traceparent = traceparent_of(message.headers, otherwise=prompt.job_id)
        submitted_us = prompt.submitted_us or message.timestamp_us
        prompt = replace(prompt, submitted_us=submitted_us, tenant=tenant_of(prompt, message.headers))
        plan, arm = self._planned(prompt)
        job = new_job(prompt, plan, content_hash=digest, traceparent=traceparent, now_us=now_us)
        job = replace(job, arm=arm)
        if early and now_us - early.changed_us < EARLY_US:
            job = replace(job, stage=early.stage, reason=early.reason)
        return _decision((job, ()), now_us)

    def _planned(self, prompt: r.PromptSubmitted) -> tuple[r.Plan, str]:
        """The plan, and the arm of a release that the job is in. Raises: BadInputError."""
        plan = planned(prompt, self.instruct, self.assets)
        release = concerning(prompt, self.releases())
        if release is None:
            return plan, ""
        try:
            changed = planned(changed_prompt(prompt, release), self.instruct, self.assets)
        except BadInputError:
            return plan, ""  # the candidate cannot make such a job: it is on neither side
        if not is_candidate(prompt.job_id, release):
            return plan, arm_name(release, candidate=False)
        return replace(changed, encode=changed_encode(changed.encode, release)), arm_name(release, candidate=True)

    def _step(self, job: r.JobState, event: Event, now_us: int) -> Step | None:
        match event:
            case r.SegmentGenerated():
                return segment_generated(job, event, now_us)
            case r.SegmentFailed():
                return segment_failed(job, event, now_us, self.rules)
            case r.PieceStitched():
                return piece_stitched(job, event, now_us)
            case r.SeamRejected():
                return seam_rejected(job, event, now_us, self.rules)
            case r.PieceChecked():
                return piece_checked(job, event, now_us, self.rules)
            case r.VideoAssembled():
                return video_assembled(job, event, now_us)
            case r.AssemblyFailed():
                return assembly_failed(job, event, now_us, self.rules)
            case r.VideoChecked():
                return video_checked(job, event, now_us, self.rules)
            case r.CancelRequested():
                return cancelled(job, event)
            case r.RetryRequested():
                return retried(job, event)
            case _:
                return None


def _event(message: Message) -> Event:
    event = (decode_prompt if message.topic == r.PromptSubmitted.topic else decode)(message.value or b"")
    if event.topic != message.topic:
        raise refused("value", "record", f"{type(event).__name__} does not belong on this topic")
    return event


def _wrong_key(event: Event, message: Message) -> BadInputError | None:
    if message.key == key_of(event).encode():
        return None
    return refused("key", "job_id", "the record's key is not its job_id")


def _hash(prompt: r.PromptSubmitted) -> str:
    """Empty if the prompt has numbers that no accepted prompt can have."""
    try:
        return content_hash(prompt)
    except (ValueError, TypeError, OverflowError):
        return ""


def _put_aside(message: Message, state: r.JobState | None) -> Step | None:
    """A letter about a letter there must never be: what cannot be read says nothing."""
    try:
        letter = parse(message)
        event = decode(letter.original.value or b"")
    except BadInputError:
        return None
    if state is None or state.plan is None or letter.original.topic != event.topic or _wrong_key(event, message):
        return None
    return put_aside(state, letter, event)


def _unknown(event: Event, now_us: int) -> Decision:
    """Of a job that nobody submitted, so far."""
    if isinstance(event, r.CancelRequested):
        try:
            check_job_id(event.job_id)
        except BadInputError as error:
            return Decision(refused=error)
        return Decision(state=cancelled_early(event, now_us))
    if isinstance(event, r.RetryRequested):
        return Decision(refused=refused("job_id", "unknown_job", f"no job {event.job_id!r:.120} was ever accepted"))
    return _NOTHING


def _decision(step: Step | None, now_us: int) -> Decision:
    if step is None:
        return _NOTHING
    job = replace(step[0], changed_us=now_us)
    return Decision(state=job, events=(*step[1], changed(job)))


def _refusal(error: BadInputError, job_id: str, digest: str, now_us: int) -> Decision:
    claimed = "".join(c if c.isprintable() else "?" for c in job_id[:_MAX_ID_CHARS])
    event = r.PromptRefused(
        job_id=claimed,
        field=clipped(error.field),
        rule=error.rule,
        message=clipped(error.message),
        content_hash=digest,
        refused_us=now_us,
    )
    return Decision(events=(event,), refused=error)
