"""What the topics say about jobs, read from their beginning to their end."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from infra.bus.reader import Reader, event_of
from infra.cli.errors import CliError, Exit
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import JobChanged, PromptRefused, VideoFinished
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
    for event in _all(settings, JobChanged, VideoFinished, PromptRefused):
        match event:
            case JobChanged(job_id=said) if said == job_id:
                job = event
            case VideoFinished(job_id=said) if said == job_id:
                video = event
            case PromptRefused(job_id=said) if said == job_id:
                refusals.append(event)
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


def events(settings: Settings, kind: type[E]) -> list[E]:
    """All events of a kind that its topic holds."""
    return [event for event in _all(settings, kind) if isinstance(event, kind)]


def _all(settings: Settings, *kinds: type[Event]) -> Iterator[Event]:
    """What the topics of these kinds hold; what cannot be read is passed over."""
    with Reader.from_beginning(settings, [kind.topic for kind in kinds]) as reader:
        for message in reader.to_end():
            with contextlib.suppress(BadInputError):
                yield event_of(message)
