"""What is usual: the same for the same pieces in any order, the same in ClickHouse, and not dragged along by a slow drift."""

import random
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import reduce

import pytest

from infra.clickhouse import connect, migrate
from infra.settings import Settings
from qc_consumers.profile import load_profiles
from qc_consumers.usual import departures
from schemas.records import PieceChecked, QualityBaseline, Scores, Usual, Verdict
from streams.insights.facts import JobFacts, dump, load, observe
from streams.insights.quality import MINIMUM, REFERENCE, Quality, quality_of
from tests.insights.events import at, checked

POPULATION = "standard/animatic/1/sd/h264-18"
SIGMA_DB = 0.8


def piece(number: int, psnr_y: float, **changes: object) -> PieceChecked:
    """The `number`-th piece of a line that makes ten a job, one a second."""
    event = checked(f"job-{number // 10:04d}", number % 10, checked_s=float(number))
    scores = replace(event.scores, psnr_y_mean=psnr_y, vmaf_mean=psnr_y + 50, vmaf_worst_second=psnr_y + 48)
    return replace(event, scores=scores, population=POPULATION, **changes)  # pyright: ignore[reportArgumentType]


def noisy(count: int, *, drift_db: float = 0.0, begins: int = 0) -> list[PieceChecked]:
    """Scores around 44 dB that fall by `drift_db` in every hundred pieces from the `begins`-th on."""
    chance = random.Random(6)  # noqa: S311 (a test)
    return [piece(n, chance.gauss(44, SIGMA_DB) - drift_db * max(0, n - begins) / 100) for n in range(count)]


def rows_after(events: Sequence[PieceChecked]) -> list[JobFacts]:
    rows: dict[str, JobFacts | None] = {}
    for event in events:
        rows[event.job_id] = observe(rows.get(event.job_id), event)
    return [row for row in rows.values() if row]


def said(events: Sequence[PieceChecked]) -> QualityBaseline | None:
    """What the stream says last, event by event."""
    quality, rows, last = Quality(), dict[str, JobFacts](), None
    for event in events:
        new = observe(rows.get(event.job_id), event)
        assert new
        for baseline in quality.replace(rows.get(event.job_id), new):
            last = baseline
        rows[event.job_id] = new
    return last


def usual(baseline: QualityBaseline | None, score: str = "psnr_y") -> Usual:
    assert baseline
    return next(each for each in baseline.usual if each.score == score)


def test_there_is_none_before_enough_pieces_have_passed() -> None:
    assert said(noisy(MINIMUM - 1)) is None
    baseline = said(noisy(MINIMUM))
    assert baseline
    assert (baseline.pieces, baseline.reference_pieces) == (MINIMUM, MINIMUM)
    assert usual(baseline).median == pytest.approx(44, abs=0.5)
    assert usual(baseline).mad == pytest.approx(SIGMA_DB / 1.4826, rel=0.3)


def test_pieces_that_failed_were_not_measured_or_compare_with_nothing_do_not_count() -> None:
    good, bad = noisy(MINIMUM), noisy(MINIMUM + 30)[MINIMUM:]
    failed = [replace(event, verdict=Verdict.REENCODE) for event in bad[:10]]
    unmeasured = [replace(event, scores=replace(event.scores, frames=0)) for event in bad[10:20]]
    unlike = [replace(event, population="") for event in bad[20:]]
    assert said([*good, *failed, *unmeasured, *unlike]) == said(good)


def test_order_repetition_and_a_restart_change_nothing() -> None:
    events = noisy(3 * REFERENCE)
    mixed = [*events, *events[::7]]
    random.Random(1).shuffle(mixed)  # noqa: S311
    newest = said(events)
    rows = [load(dump(row)) for row in rows_after(mixed)]
    again = quality_of(rows)
    assert reduce(lambda _, row: again.replace(row, row), rows, []) == []
    last = replace(events[-1], attempt=2, checked_us=at(10_000))
    (after,) = again.replace(
        next(row for row in rows if row.job_id == last.job_id),
        observe(next(row for row in rows if row.job_id == last.job_id), last) or rows[0],
    )
    assert after == said([*events, last]) != newest


def found(events: Sequence[PieceChecked], baseline: QualityBaseline | None) -> int:
    standard = load_profiles()[-1]
    return sum(any(departures(event.scores, baseline, standard)) for event in events)


def test_a_slow_drift_does_not_drag_its_baseline_along_and_is_found() -> None:
    # 6 dB in all, but only 1.2 dB within 200 pieces: the last ones are still about the fixed limit of 38 dB.
    events = noisy(1200, drift_db=0.6, begins=REFERENCE)
    baseline = said(events)
    psnr_y = usual(baseline)
    assert psnr_y.median == psnr_y.reference_median - psnr_y.mad
    assert psnr_y.recent_median < psnr_y.median - 3
    assert found(events[-REFERENCE:], baseline) > REFERENCE / 2
    dragged = usual(said(events[-REFERENCE:]))
    assert baseline
    follows = replace(baseline, usual=(dragged,))
    assert found(events[-REFERENCE:], follows) < REFERENCE / 20, "a baseline that only rolls finds nothing"


def test_a_steady_line_is_left_alone_and_one_bad_piece_is_found_with_its_evidence() -> None:
    events = noisy(600)
    baseline = said(events)
    assert found(events, baseline) <= 1
    bad = piece(600, 44 - 8 * SIGMA_DB)
    finding = next(iter(departures(bad.scores, baseline, load_profiles()[-1])))
    assert (finding.gate, finding.verdict, finding.value) == ("psnr_y_baseline", Verdict.PASS, bad.scores.psnr_y_mean)
    assert finding.limit < usual(baseline).median
    assert finding.detail.startswith(f"baseline median {usual(baseline).median:.4g}, MAD 0.")
    assert "n 600" in finding.detail


def test_without_a_baseline_only_fixed_limits_stand() -> None:
    assert list(departures(piece(0, 10.0).scores, None, load_profiles()[-1])) == []


def inserted(settings: Settings, events: Sequence[PieceChecked]) -> None:
    """The rows of these pieces as check-pieces writes them, those columns that matter here."""
    migrate(settings)
    own = ("job_id", "piece", "attempt", "verdict", "population", "checked_us")
    scores = [each.name for each in fields(Scores) if each.name != "frames"]
    rows = [
        ["checked", *(getattr(event, name) for name in own), *(getattr(event.scores, name) for name in scores)]
        for event in events
    ]
    for first in (True, False):  # an insert is of one partition
        chosen = [row for row, event in zip(rows, events, strict=True) if (event.attempt == 1) == first]
        connect(settings).insert("piece_log", chosen, ["outcome", *own, *scores])


@pytest.mark.parametrize("count", [MINIMUM + 1, 2 * REFERENCE + 1, 1000])
def test_clickhouse_says_the_same_of_the_same_pieces(clickhouse_settings: Settings, count: int) -> None:
    events = noisy(count, drift_db=0.2, begins=REFERENCE)
    events += [replace(piece(3, 30.0, attempt=2), checked_us=at(3.5)), piece(count, 20.0, verdict=Verdict.REENCODE)]
    inserted(clickhouse_settings, [*events, *(replace(e, job_id="few", population="few") for e in noisy(5))])
    baseline = said(events)
    rows = list(connect(clickhouse_settings).query("SELECT * FROM quality_baselines ORDER BY score").named_results())
    assert baseline
    assert [row["score"] for row in rows] == sorted(each.score for each in baseline.usual)
    for row in rows:
        assert (row["population"], row["pieces"]) == (POPULATION, baseline.pieces)
        assert row["reference_pieces"] == baseline.reference_pieces
        mine = usual(baseline, row["score"])
        for name in ("median", "mad", "reference_median", "recent_median", "recent_mad"):
            assert row[name] == pytest.approx(getattr(mine, name), abs=1e-4), name
