"""What the door takes and gives, as JSON: the records of the topics, and little beside them."""

from pydantic import BaseModel, ConfigDict, Field

from schemas.records import JobChanged, JobProgress, PromptRefused, VideoFinished


class Problem(BaseModel):
    """Why it was not done. `field` and `rule` are those of the topic's own checks."""

    field: str
    rule: str
    message: str


class Failure(BaseModel):
    """Any other refusal."""

    detail: str


class Submitted(BaseModel):
    """A prompt that is on its topic, or was already taken."""

    job_id: str
    content_hash: str
    trace_id: str
    known: bool
    """A job of this id and content was there before: nothing was sent."""


class JobPage(BaseModel):
    """All that the line has said of a job."""

    job: JobChanged | None
    progress: JobProgress | None
    refused: PromptRefused | None
    video: VideoFinished | None


class JobList(BaseModel):
    """The newest jobs first. `total` counts all that match."""

    jobs: tuple[JobChanged, ...]
    total: int


class Reason(BaseModel):
    """For a cancellation."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(default="", max_length=500)


class FromSegment(BaseModel):
    """Where a retry begins; the segments before stay as they are."""

    model_config = ConfigDict(extra="forbid")
    from_segment: int = Field(default=0, ge=0, le=100_000)


class Sent(BaseModel):
    """A request that is on its topic; what comes of it is an event of the job."""

    job_id: str
    trace_id: str
