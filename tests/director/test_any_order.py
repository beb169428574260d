"""The same end however events are ordered, repeated, lost and sent again: one VideoFinished, or one failure with a reason."""

import random
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from schemas import records as r
from schemas.topics import Event
from streams.decider import INPUTS
from streams.jobs import FINAL
from streams.requests import outstanding
from tests.director.builders import (
    SECOND_US,
    Line,
    answers,
    decider,
    generated,
    piece_checked,
    prompt,
    rejected,
    segment_failed,
    stitched,
    timeless,
    video_checked,
)

SHOTS = (
    r.Shot(prompt="a", seconds=3.0),
    r.Shot(prompt="b", seconds=2.0, transition="dissolve"),
    r.Shot(prompt="c", seconds=2.0, transition="continuous"),
    r.Shot(prompt="d", seconds=1.0),
)
WISH = prompt(shots=SHOTS, duration_s=None)
TROUBLE = 6
"""Bad answers and losses of one run: enough to meet every budget, not so many that no run ends well."""


class Bus:
    """Topics as logs: every reader has its own place in each, and order is kept within a topic only."""

    def __init__(self) -> None:
        self.logs: dict[str, list[Event]] = defaultdict(list)
        self.read: dict[tuple[str, str], int] = defaultdict(int)

    def publish(self, *events: Event) -> None:
        for event in events:
            self.logs[event.topic].append(event)

    def waiting(self, reader: str, topics: tuple[str, ...]) -> list[str]:
        return [topic for topic in topics if self.read[reader, topic] < len(self.logs[topic])]

    def next(self, reader: str, topic: str) -> Event:
        self.read[reader, topic] += 1
        return self.logs[topic][self.read[reader, topic] - 1]


WORKERS = {
    "generate": r.SegmentRequested.topic,
    "stitcher": r.PieceRequested.topic,
    "pieces": r.PieceStitched.topic,
    "assembler": r.AssemblyRequested.topic,
    "videos": r.VideoAssembled.topic,
}
seeds = st.integers(0, 1 << 30)
shares = st.sampled_from([0.3, 0.1, 0.0])
losses = st.sampled_from([0.0, 0.02])


class AnyOrder(RuleBasedStateMachine):
    """Director and workers take turns in any order; each step is one that could happen on the bus."""

    def __init__(self) -> None:
        super().__init__()
        self.bus = Bus()
        self.line = Line(decider=decider(segment_attempts=4, reworks=2))
        self.manifests: dict[tuple[str, str], tuple[Event, ...]] = {}
        self.requests: dict[tuple[str, int, int], str] = {}
        self.trouble = 0

        self.bus.publish(WISH)

    @initialize(seed=seeds, turns=st.integers(0, 200), repeats=shares, bad=shares, lost=losses)
    def begin(self, seed: int, turns: int, repeats: float, bad: float, lost: float) -> None:
        """Start somewhere in the middle."""
        self.go(seed, turns, repeats, bad, lost)

    @rule(seed=seeds, turns=st.integers(1, 80), repeats=shares, bad=shares, lost=losses)
    def go(self, seed: int, turns: int, repeats: float, bad: float, lost: float) -> None:
        """Whoever has something to read takes a turn; a share of the work goes wrong or gets lost, old records come again."""
        chance = random.Random(seed)  # noqa: S311
        for _ in range(turns):
            if ready := self._ready():
                reader, topic = chance.choice(ready)
                if reader == "director":
                    self._direct(topic)
                elif chance.random() < lost:
                    self.bus.next(reader, topic)
                else:
                    self._work(reader, topic, trouble=chance.random() < bad, dice=chance.randrange(60))
            while chance.random() < repeats:
                sent = [event for name in (*INPUTS, *WORKERS.values()) for event in self.bus.logs[name]]
                self.bus.publish(chance.choice(sent))

    @rule()
    def scan(self) -> None:
        """A long time passes."""
        self.line.now_us += 100_000 * SECOND_US
        if self.line.row is not None:
            for decision in self.line.decider.scan([self.line.row], self.line.now_us):
                self._say(self.line.take(decision))

    @precondition(lambda self: self.line.row is not None and self.line.row.stage not in FINAL)
    @rule()
    def restart(self) -> None:
        """The director comes back with its row as it was written."""
        assert self.line.row is not None
        self.line = Line(decider=self.line.decider, row=self.line.row, now_us=self.line.now_us, said=self.line.said)

    @invariant()
    def what_is_outstanding_was_asked_for(self) -> None:
        if self.line.row is not None:
            asked = {_hash(event) for event in self.line.said}
            assert {_hash(event) for event in outstanding(self.line.row, 0)} <= asked

    @invariant()
    def a_running_job_waits_for_something(self) -> None:
        row = self.line.row
        if row is not None and row.stage not in FINAL:
            assert list(outstanding(row, 0))

    @invariant()
    def at_most_one_video_is_finished(self) -> None:
        assert len(self.line.all(r.VideoFinished)) <= 1

    def teardown(self) -> None:
        """Let everything that is still under way arrive; then look at the end."""
        for _ in range(12):
            while ready := self._ready():
                reader, topic = ready[0]
                if reader == "director":
                    self._direct(topic)
                else:
                    self._work(reader, topic, trouble=False, dice=0)
            if self.line.row is None or self.line.job.stage in FINAL:
                break
            self.scan()
        check_end(self.line)
        super().teardown()

    def _ready(self) -> list[tuple[str, str]]:
        """Who could read which topic now."""
        director = [("director", topic) for topic in self.bus.waiting("director", INPUTS)]
        return [*director, *((name, topic) for name, topic in WORKERS.items() if self.bus.waiting(name, (topic,)))]

    def _direct(self, topic: str) -> None:
        self.line.now_us += 1
        self._say(self.line.send(self.bus.next("director", topic)))

    def _work(self, reader: str, topic: str, *, trouble: bool, dice: int) -> None:
        event = self.bus.next(reader, topic)
        done = self.manifests.get((reader, _hash(event)))
        if done is None:
            bad = _bad_answers(event) if trouble and self.trouble < TROUBLE else ()
            done = (bad[dice % len(bad)],) if bad else answers(event)
            self.trouble += bool(bad)
            if not any(isinstance(answer, r.SegmentFailed) for answer in done):
                self.manifests[reader, _hash(event)] = done
        self.bus.publish(*done)

    def _say(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, r.SegmentRequested | r.PieceRequested | r.AssemblyRequested):
                index = getattr(event, "segment", getattr(event, "piece", 0))
                name = (type(event).__name__, index, event.attempt)
                assert self.requests.setdefault(name, event.request_hash) == event.request_hash, "an attempt used twice"
        self.bus.publish(*events)


def _hash(event: Event) -> str:
    return getattr(event, "request_hash", "")


def _bad_answers(request: Event) -> tuple[Event, ...]:
    """Those that end a job at once are the rarer ones."""
    match request:
        case r.SegmentRequested():
            kinds = 3 * (r.FailureKind.CRASHED, r.FailureKind.NAN)
            failures = [segment_failed(request, kind=kind) for kind in kinds]
            return (*failures, segment_failed(request, retryable=False))
        case r.PieceRequested() if request.piece:
            return (rejected(request),)
        case r.PieceStitched():
            verdicts = (*3 * (r.Verdict.REENCODE, r.Verdict.REGENERATE), r.Verdict.QUARANTINE)
            return tuple(piece_checked(request, verdict) for verdict in verdicts)
        case r.VideoAssembled():
            return tuple(video_checked(request, v, frame) for v in list(r.Verdict)[1:] for frame in (-1, 75))
        case _:
            return ()


def check_end(line: Line) -> None:
    """The job is over, and what it made hangs together."""
    if line.row is None:
        return
    assert line.job.stage in (r.Stage.FINISHED, r.Stage.FAILED)
    finished = line.all(r.VideoFinished)
    if line.job.stage is r.Stage.FAILED:
        assert line.job.reason
        assert finished == []
        return
    assert len(finished) == 1
    check_video(line, finished[0])


def check_video(line: Line, video: r.VideoFinished) -> None:
    """Every piece of the video continues from the one before it, on segments that continue from each other."""
    assembly = line.last(r.AssemblyRequested)
    pieces = {stitched(e).video: e for e in line.all(r.PieceRequested)}
    segments = {generated(e).frames: e for e in line.all(r.SegmentRequested)}
    chain = [pieces[ref.video] for ref in assembly.pieces]
    assert [ref.start_frame + ref.frames for ref in assembly.pieces] == [
        *(ref.start_frame for ref in assembly.pieces[1:]),
        video.frames,
    ]
    for before, after in pairwise(chain):
        assert after.previous_frames == before.segment_frames
        assert after.previous_correction == stitched(before).correction
        assert segments[after.segment_frames].latent_ref == (generated(segments[before.segment_frames]).latents,)


AnyOrder.TestCase.settings = settings(max_examples=200, stateful_step_count=20, deadline=None)
TestAnyOrder = AnyOrder.TestCase


@given(seed=seeds, turns=st.integers(0, 200))
@settings(max_examples=50, deadline=None)
def test_order_and_repeats_alone_change_nothing_in_the_end(seed: int, turns: int) -> None:
    machine = AnyOrder()
    machine.go(seed, turns, repeats=0.3, bad=0.0, lost=0.0)
    machine.teardown()
    expected = Line()
    expected.run(WISH)
    assert timeless(machine.line.job) == timeless(expected.job)
    assert timeless(machine.line.last(r.VideoFinished)) == timeless(expected.last(r.VideoFinished))


@pytest.mark.parametrize("lookahead", [1, 2])
def test_a_short_lookahead_changes_nothing_in_the_end(lookahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.jobs.LOOKAHEAD", lookahead)
    for seed in range(60):
        machine = AnyOrder()
        machine.go(seed, 120, repeats=0.3, bad=0.1, lost=0.1)
        machine.teardown()
