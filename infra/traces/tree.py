"""The spans of a job, from what was heard of it: the same facts in any order give the same tree.

    job                      submitted -> finished, failed or cancelled; one more for each retry
      decide                 a record of the director's, until all that it led to is on the broker
      segment                a try: denoise, decode, store
      stitch                 a try: encode, with the times of every frame; links to the segments it joins
      check piece            links to the piece
      assemble               links to all pieces
      check video            links to the video

All but the steps inside a try are children of the job: a tree of causes would be as deep as the film is long. Causes are
links: a try's to the decision that asked for it, a decision's to the try that it is about.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra.traces.fact import Asked, Done, Frames
from infra.traces.run import ENDED, Run
from infra.traces.span import Attribute, Key, Moment, Span, span_id_of
from schemas.records import Stage

LINE = "line"
"""The service of the job's own span: it is nobody's alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Root:
    span_id: int
    start_us: int
    end_us: int
    stage: str
    reason: str
    before: int
    """The span that a retry follows; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """What spans refer to each other by."""

    roots: list[_Root]
    ids: Mapping[Key, int]
    made: Mapping[str, int]
    """URI of what a try made -> its span."""
    places: Mapping[str, int]
    """Record -> the span that it ended."""


def tree(run: Run) -> tuple[Span, ...]:
    """The job's spans, the root first; one more tree beside it for each retry."""
    roots = _roots(run)
    if not roots:
        return ()
    index = _index(run, roots)
    inside = [span for done in run.done.values() for span in _work(run, done, index)]
    inside += [_decision(run, cause, index) for cause in run.said]
    inside.sort(key=lambda span: (span.start_us, span.span_id))
    return (*(_job(run, root, n) for n, root in enumerate(roots)), *inside)


def failed(spans: tuple[Span, ...]) -> bool:
    """The job failed or was refused, or a try in it failed."""
    return any(span.error for span in spans)


def _index(run: Run, roots: list[_Root]) -> _Index:
    ids = {key: span_id_of(run.job_id, *key) for key in run.done}
    places = {done.place: ids[done.key] for done in run.done.values()}
    made = {done.made: ids[done.key] for done in run.done.values() if done.made}
    return _Index(roots=roots, ids=ids, made=made, places=places | {run.prompt: roots[0].span_id})


def _roots(run: Run) -> list[_Root]:
    first = span_id_of(run.job_id, "job")
    if run.refused and not run.marks:
        return [
            _Root(
                span_id=first,
                start_us=min((said.at_us for said in run.said.values()), default=run.refused.refused_us),
                end_us=run.refused.refused_us,
                stage="refused",
                reason=f"{run.refused.field}: {run.refused.message}",
                before=0,
            )
        ]
    roots: list[_Root] = []
    begun = None if run.told else (run.job.submitted_us if run.job else 0, first)
    before = first if run.told else 0
    for mark in run.marks:
        if mark.stage not in ENDED:
            begun = begun or (mark.at_us, span_id_of(run.job_id, "retry", mark.at_us))
        elif begun:
            start_us, span_id = begun
            roots.append(
                _Root(
                    span_id=span_id,
                    start_us=start_us or mark.at_us,
                    end_us=max(mark.at_us, start_us),
                    stage=mark.stage.value,
                    reason=mark.reason,
                    before=before,
                )
            )
            before, begun = span_id, None
    return roots


def _job(run: Run, root: _Root, number: int) -> Span:
    said: dict[str, Attribute] = {"longtake.job_id": run.job_id, "longtake.stage": root.stage}
    if run.job:
        said |= {
            "longtake.tenant": run.job.tenant,
            "longtake.engine": run.job.engine,
            "longtake.frames": run.job.frames,
            "longtake.segments": run.job.segments,
            "longtake.attempts": run.job.attempts,
        }
    if root.reason:
        said["longtake.reason"] = root.reason
    if run.truncated:
        said["longtake.truncated"] = True
    bad = root.stage in (Stage.FAILED.value, "refused")
    return Span(
        trace_id=run.trace_id,
        span_id=root.span_id,
        parent_id=0 if number or root.before else run.caller,
        name="job",
        service=LINE,
        worker="",
        start_us=root.start_us,
        end_us=root.end_us,
        attributes=said,
        links=(root.before,) if root.before else (),
        error=(root.reason or root.stage) if bad else "",
    )


def _parent(roots: list[_Root], start_us: int) -> int:
    """The last root that had begun."""
    return next((root.span_id for root in reversed(roots) if root.start_us <= start_us), roots[0].span_id)


def _decision(run: Run, cause: str, index: _Index) -> Span:
    said = run.said[cause]
    about = index.places.get(cause)
    return Span(
        trace_id=run.trace_id,
        span_id=span_id_of(run.job_id, "decide", cause),
        parent_id=_parent(index.roots, said.at_us),
        name="decide",
        service="director",
        worker="",
        start_us=said.at_us,
        end_us=said.written_us,
        attributes={"longtake.job_id": run.job_id, "longtake.cause": cause, "longtake.events": tuple(said.events)},
        links=(about,) if about else (),
    )


def _work(run: Run, done: Done, index: _Index) -> Iterator[Span]:
    asked, source = run.asked.get(done.key), run.done.get(done.source) if done.source else None
    waits_us = asked.at_us if asked else source.end_us if source else done.end_us
    start_us = min(done.start_us or waits_us, done.end_us)
    number = {"longtake.piece" if done.service != "generate" else "longtake.segment": done.key.number}
    said = {"longtake.job_id": run.job_id, "longtake.attempt": done.key.attempt, **number, **done.attributes}
    if asked and done.start_us:
        said["longtake.waited_us"] = max(0, done.start_us - asked.at_us)
    span = Span(
        trace_id=run.trace_id,
        span_id=index.ids[done.key],
        parent_id=_parent(index.roots, start_us),
        name=done.key.kind,
        service=done.service,
        worker=done.worker,
        start_us=start_us,
        end_us=done.end_us,
        attributes=said,
        links=tuple(_links(run, done, asked, index)),
        error=done.error,
    )
    yield span
    for part in done.parts:
        yield Span(
            trace_id=run.trace_id,
            span_id=span_id_of(run.job_id, *done.key, part.name),
            parent_id=span.span_id,
            name=part.name,
            service=done.service,
            worker=done.worker,
            start_us=part.start_us,
            end_us=part.end_us,
            attributes={"longtake.job_id": run.job_id, **number},
            moments=tuple(_moments(done.frames)) if done.frames and part.name == "encode" else (),
        )


def _links(run: Run, done: Done, asked: Asked | None, index: _Index) -> Iterator[int]:
    """To what it joins, then to what asked for it."""
    if done.source and done.source in index.ids:
        yield index.ids[done.source]
    if asked is None:
        return
    yield from (index.made[uri] for uri in asked.sources if uri in index.made)
    if asked.cause in run.said:
        yield span_id_of(run.job_id, "decide", asked.cause)


def _moments(frames: Frames) -> Iterator[Moment]:
    """One for each frame, when it was encoded; when it was generated and decoded is beside it."""
    columns = (frames.generated_us, frames.decoded_us, frames.encoded_us)
    for number, (generated_us, decoded_us, encoded_us) in enumerate(zip(*columns, strict=False), frames.first):
        said: dict[str, Attribute] = {
            "longtake.frame": number,
            "longtake.generated_us": generated_us,
            "longtake.decoded_us": decoded_us,
        }
        yield Moment(name="frame", at_us=encoded_us, attributes=said)
