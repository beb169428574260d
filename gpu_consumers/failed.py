"""The event of a segment that did not come out, whether its engine says so or its process has ended."""

import time

from gpu_consumers.engines.engine import EngineError
from infra.redact import redacted
from schemas.records import SegmentFailed, SegmentRequested


def failed(request: SegmentRequested, error: EngineError, *, engine_version: str, worker: str) -> SegmentFailed:
    """`engine_version` is empty if the engine was never made."""
    return SegmentFailed(
        job_id=request.job_id,
        segment=request.segment,
        attempt=request.attempt,
        request_hash=request.request_hash,
        kind=error.kind,
        reason=redacted(error.reason),
        retryable=error.retryable,
        engine=request.engine,
        engine_version=engine_version,
        failed_us=time.time_ns() // 1000,
        worker=worker,
        lost=error.lost,
    )
