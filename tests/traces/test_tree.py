"""The tree of a job's spans: whole, the same whatever the order, with every failure in it."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from infra.settings import Settings
from infra.traces.book import Book, chosen
from infra.traces.span import Span
from schemas import records as r
from schemas.headers import trace_root
from schemas.topics import Event
from tests.director import builders as b
from tests.traces.film import Film

LATER_S = 100.0


def told(film: Film, book: Book | None = None) -> tuple[Span, ...]:
    """The job's spans after all its records."""
    book = book or Book()
    for message, event in film.records:
        book.take(message, event, 0.0)
    (spans,) = book.due(LATER_S)
    return spans


def named(spans: tuple[Span, ...], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]


def test_a_job_is_one_tree_from_prompt_to_finished_video() -> None:
    film = Film().submit(duration_s=8.0)
    spans = told(film)
    (job,) = named(spans, "job")
    segments = len(film.all(r.SegmentGenerated))
    assert segments >= 3
    counts = Counter(span.name for span in spans)
    decisions = counts.pop("decide")
    assert counts == {
        "job": 1,
        **dict.fromkeys(("segment", "denoise", "decode", "store", "stitch", "encode", "check piece"), segments),
        **dict.fromkeys(("assemble", "check video"), 1),
    }
    assert decisions >= 2 * segments
    ids = {span.span_id: span for span in spans}
    assert len(ids) == len(spans)
    assert {span.trace_id for span in spans} == {int(trace_root("harbour").split("-")[1], 16)}
    assert {ids[span.parent_id].name for span in spans if span is not job} == {"job", "segment", "stitch"}
    assert all(link in ids for span in spans for link in span.links)
    assert all(job.start_us <= span.start_us <= span.end_us <= job.end_us for span in spans if span.name != "decide")
    (finished,) = film.all(r.VideoFinished)
    assert (job.start_us, job.end_us) == (finished.submitted_us, finished.finished_us)


def test_a_join_links_to_all_that_it_joins_and_to_the_decision_behind_it() -> None:
    spans = told(Film().submit(duration_s=8.0))
    ids = {span.span_id: span for span in spans}

    def linked(span: Span) -> list[tuple[str, object]]:
        return [
            (ids[link].name, ids[link].attributes.get("longtake.segment", ids[link].attributes.get("longtake.piece")))
            for link in span.links
        ]

    for stitch in named(spans, "stitch"):
        piece = stitch.attributes["longtake.piece"]
        assert isinstance(piece, int)
        before = [("segment", piece - 1)] if piece else []
        assert linked(stitch) == [*before, ("segment", piece), ("decide", None)]
    (assembly,) = named(spans, "assemble")
    assert linked(assembly) == [*(("stitch", n) for n in range(len(named(spans, "stitch")))), ("decide", None)]
    (check,) = named(spans, "check video")
    assert [ids[link].name for link in check.links] == ["assemble"]
    first = next(
        span for span in named(spans, "decide") if str(span.attributes["longtake.cause"]).startswith("longtake.prompts")
    )
    assert [ids[link].name for link in first.links] == ["job"]


def test_times_are_those_of_the_events_to_the_microsecond() -> None:
    film = Film().submit()
    spans = told(film)
    by_start = {span.start_us: span for span in named(spans, "segment")}
    for event in film.all(r.SegmentGenerated):
        segment = by_start[event.started_us]
        assert segment.end_us == event.finished_us
        children = {span.name: span for span in spans if span.parent_id == segment.span_id}
        lengths = {name: span.end_us - span.start_us for name, span in children.items()}
        assert lengths == {"denoise": event.denoise_us, "decode": event.decode_us, "store": event.store_us}
    encodes = {span.start_us: span for span in named(spans, "encode")}
    for event in film.all(r.PieceStitched):
        moments = encodes[event.encoded_us[0]].moments
        assert [moment.at_us for moment in moments] == list(event.encoded_us)
        numbers = [moment.attributes["longtake.frame"] for moment in moments]
        assert numbers == list(range(event.start_frame, event.start_frame + event.frames))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_topics_and_doubles_make_no_difference(seed: int) -> None:
    film = Film().submit(duration_s=6.0)
    expected = told(film)
    mixed = Film(records=list(film.records))
    changes = [record for record in film.records if isinstance(record[1], r.JobChanged)]
    mixed.records = [record for record in film.records if record not in changes] + film.records[:9]
    random.Random(seed).shuffle(mixed.records)  # noqa: S311 (no secret)
    mixed.records += changes  # of one topic and one key: they keep their order

    def plain(spans: tuple[Span, ...]) -> list[Span]:
        listed = [replace(span, attributes=dict(span.attributes) | {"longtake.events": ""}) for span in spans]
        return sorted(listed, key=lambda span: span.span_id)

    assert plain(told(mixed)) == plain(expected)


def test_a_producers_own_span_is_the_parent_of_the_job() -> None:
    film = Film(caller="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").submit()
    spans = told(film)
    (job,) = named(spans, "job")
    assert {span.trace_id for span in spans} == {0x4BF92F3577B34DA6A3CE929D0E0E4736}
    assert job.parent_id == 0x00F067AA0BA902B7


def failing(times: int) -> Film:
    """Segment 1 fails so many times, for good the last time if it is the third."""
    failures = iter(range(times))

    def spoil(event: Event) -> Event:
        if isinstance(event, r.SegmentGenerated) and event.segment == 1 and next(failures, None) is not None:
            said = {"job_id": event.job_id, "segment": 1, "attempt": event.attempt, "request_hash": event.request_hash}
            return r.SegmentFailed(
                **said,
                kind=r.FailureKind.CRASHED,
                reason="exit code -9",
                retryable=True,
                engine=event.engine,
                engine_version="1",
                failed_us=event.finished_us,
                worker="generate-0",
            )
        return event

    return Film(spoil=spoil)


def test_every_failed_try_is_a_span_of_its_own_with_its_reason() -> None:
    spans = told(failing(1).submit())
    tries = [span for span in named(spans, "segment") if span.attributes["longtake.segment"] == 1]
    assert [(span.attributes["longtake.attempt"], span.error) for span in tries] == [
        (1, "crashed: exit code -9"),
        (2, ""),
    ]
    assert tries[0].start_us < tries[0].end_us


def test_a_retry_is_a_job_span_of_its_own_that_follows_the_failed_one() -> None:
    book, film = Book(), failing(3).submit()
    spans = told(film, book)
    (job,) = named(spans, "job")
    assert job.error
    assert job.attributes["longtake.stage"] == "failed"
    begun = len(film.records)
    film.retry()
    again = told(Film(records=film.records[begun:]), book)
    (retry,) = named(again, "job")
    assert (retry.attributes["longtake.stage"], retry.error, retry.links) == ("finished", "", (job.span_id,))
    assert retry.trace_id == job.trace_id
    assert not {span.span_id for span in again} & {span.span_id for span in spans}
    whole = told(film)  # read at once, as after a restart
    assert {(s.span_id, s.parent_id) for s in whole} == {(s.span_id, s.parent_id) for s in (*spans, *again)}


def test_a_refused_prompt_is_a_failed_job() -> None:
    spans = told(Film().submit(fps=0.0))
    (job,) = named(spans, "job")
    assert job.error.startswith("fps: ")
    assert [span.name for span in spans] == ["job", "decide"]


# --- which are told --------------------------------------------------------------------------------------------------


def kept(films: list[Film], **shares: object) -> list[tuple[Span, ...]]:
    settings = Settings.model_validate(shares)
    return [spans for film in films if (spans := chosen(told(film), settings))]


def test_a_share_of_the_jobs_is_told_and_all_in_which_something_failed() -> None:
    fine = [Film(job_id=f"job-{number}", _line=b.Line()).submit(duration_s=1.0) for number in range(60)]
    assert kept(fine, trace_share=0) == []
    half = {spans[0].trace_id for spans in kept(fine, trace_share=0.5)}
    more = {spans[0].trace_id for spans in kept(fine, trace_share=0.8)}
    assert 15 <= len(half) <= 45
    assert half < more
    assert len(kept(fine)) == 60
    bad = [failing(1).submit(), failing(3).submit(), Film().submit(fps=0.0)]
    assert len(kept(bad, trace_share=0)) == 3


def test_a_service_can_have_a_smaller_share_and_the_rest_stays_a_tree() -> None:
    (spans,) = kept([Film().submit()], trace_shares={"director": 0, "check-pieces": 0})
    names = {span.name for span in spans}
    assert not names & {"decide", "check piece"}
    assert names >= {"job", "segment", "encode", "assemble", "check video"}
    ids = {span.span_id for span in spans}
    assert all(span.parent_id in ids for span in spans if span.name != "job")
    assert all(link in ids for span in spans for link in span.links)


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_jobs_that_never_end_are_let_go_and_those_that_ended_are_told_first() -> None:
    film = Film().submit()
    book = Book(jobs=2)
    for message, event in film.records:
        book.take(message, event, 0.0)
    assert book.room() == []
    for number in range(2):
        other = Film(job_id=f"open-{number}").submit()
        for message, event in other.records[:6]:
            book.take(message, event, 0.0)
    (spans,) = book.room()
    assert spans == told(film)
    for message, event in Film(job_id="third").submit().records[:6]:
        book.take(message, event, 0.0)
    assert (book.room(), book.lost) == ([], 1)


def test_what_is_remembered_does_not_grow_with_the_jobs_that_ended() -> None:
    book = Book(facts=500)
    for number in range(20):
        told(Film(job_id=f"job-{number}").submit(), book)
    assert book.room() == []
    assert book.lost == 0
