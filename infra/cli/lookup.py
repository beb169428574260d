"""What the topics say about jobs, read from their beginning to their end."""

from dataclasses import dataclass
from typing import TypeVar

from infra.bus.reader import Reader, event_of
from infra.cli.errors import CliError, Exit
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import JobChanged, JobProgress, PromptRefused, VideoFinished
from schemas.topics import Event

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """All that the line announced about one job. `job` is None if it was only refused."""

    job: JobChanged | None
    video: VideoFinished | None
    refusals: tuple[PromptRefused, ...]


def last_jobs(settings: Settings) -> list[JobChanged]:
    """The last state of every job, the newest job first."""
    jobs = {event.job_id: event for event in events(settings, JobChanged)}
    return sorted(jobs.values(), key=lambda job: job.submitted_us, reverse=True)


def job_view(settings: Settings, job_id: str) -> JobView:
    """Raises: CliError if the line never heard of the job."""
    job, video, refusals = None, None, list[PromptRefused]()
    with Reader.from_beginning(settings, [JobChanged.topic, VideoFinished.topic, PromptRefused.topic]) as reader:
        for message in reader.to_end():
            if message.job_id != job_id:
                continue
            match event_of(message):
                case JobChanged() as job:
                    pass
                case VideoFinished() as video:
                    pass
                case PromptRefused() as refused:
                    refusals.append(refused)
                case _:
                    pass
    if job is None and not refusals:
        raise CliError(Exit.NOT_FOUND, f"no job {job_id!r}: 'longtake jobs' lists all")
    return JobView(job=job, video=video, refusals=tuple(refusals))


def finished_video(settings: Settings, job_id: str) -> VideoFinished:
    """Raises: CliError if there is no such job or it has not finished."""
    view = job_view(settings, job_id)
    if view.video:
        return view.video
    where = f"is {view.job.stage.value}" if view.job else "was refused"
    raise CliError(Exit.NOT_FOUND, f"job {job_id!r} {where}: it has no finished video; see 'longtake show {job_id}'")


def last_progress(settings: Settings) -> dict[str, JobProgress]:
    """The last progress of every job that the topic still holds."""
    return {event.job_id: event for event in events(settings, JobProgress)}


def events(settings: Settings, kind: type[E]) -> list[E]:
    """All events of a kind that its topic holds; what cannot be read is left out."""
    found: list[E] = []
    with Reader.from_beginning(settings, [kind.topic]) as reader:
        for message in reader.to_end():
            try:
                event = event_of(message)
            except BadInputError:
                continue
            if isinstance(event, kind):
                found.append(event)
    return found
