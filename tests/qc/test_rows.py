"""What QC writes: every frame once, of the newest attempt, whatever comes again or dies in between. Real ClickHouse."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.bus.reader import event_of
from infra.clickhouse import connect
from infra.inserts import Database, Rows
from infra.local.clickhouse import LocalClickHouse
from infra.objects import Objects
from infra.settings import Settings
from qc_consumers.check import Bench, bench_of
from qc_consumers.pieces import CheckPieces
from qc_consumers.videos import CheckVideos, check_video
from schemas.errors import BadInputError
from schemas.headers import trace_id, trace_root
from schemas.records import PieceChecked, PieceStitched, Verdict, VideoAssembled, VideoChecked
from tests.qc.clips import JOB, START_US, bunny, message, stitched
from tests.qc.film import PIECE, Film, checked, generated, rejected, verdicts

VIEWS = ("jobs", "segments", "pieces", "seams", "frames", "videos")
LOGS = ("job_log", "segment_log", "piece_log", "seam_log", "frame_log", "video_log", "finish_log")


def ask(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connect(settings).query(query).result_rows]


def rows_of(settings: Settings, table: str) -> list[tuple[Any, ...]]:
    return ask(settings, f"SELECT * FROM {table} ORDER BY ALL")  # noqa: S608 (a name of our own)


@pytest.fixture
def bench(clickhouse_settings: Settings) -> Bench:
    return bench_of(clickhouse_settings, Database(clickhouse_settings), "check-pieces-0")


@pytest.fixture
def piece(bench: Bench, tmp_path: Path) -> PieceStitched:
    return stitched(bench.objects, tmp_path, bunny()[:12])


def test_a_film_leaves_one_row_of_each_thing(film: Film) -> None:
    assert verdicts(film) == [
        (0, 1, Verdict.PASS),
        (1, 2, Verdict.PASS),
        (2, 1, Verdict.REGENERATE),
        (2, 2, Verdict.PASS),
    ]
    assert [e.verdict for e in film.answers if isinstance(e, VideoChecked)] == [Verdict.PASS, Verdict.PASS]
    count = {view: ask(film.settings, f"SELECT count() FROM {view} WHERE job_id = 'film'") for view in VIEWS}  # noqa: S608
    assert count == {
        "jobs": [(1,)],
        "segments": [(3,)],
        "pieces": [(3,)],
        "seams": [(3,)],
        "frames": [(3 * PIECE,)],
        "videos": [(1,)],
    }
    every = ask(film.settings, "SELECT count() FROM frame_log WHERE job_id = 'film'")
    assert every == [(4 * PIECE,)], "superseded attempts stay in the log"


def test_every_message_that_comes_again_changes_no_row(film: Film) -> None:
    before = {log: rows_of(film.settings, log) for log in LOGS}
    assert all(before.values())
    assert tuple(checked(film.settings, film.messages)) == film.answers
    assert {log: rows_of(film.settings, log) for log in LOGS} == before


def test_every_row_has_the_trace_of_its_job(film: Film) -> None:
    for view in VIEWS:
        found = ask(film.settings, f"SELECT DISTINCT trace_id FROM {view}")  # noqa: S608
        assert found == [(trace_id(trace_root(JOB)),)], view


def test_a_frame_row_says_where_the_frame_came_from(film: Film) -> None:
    client = connect(film.settings)
    frame = next(iter(client.query("SELECT * FROM frames WHERE job_id = 'film' AND frame = 26").named_results()))
    assert (frame["piece"], frame["segment"], frame["attempt"], frame["blended"]) == (1, 1, 2, True)
    assert frame["pts_us"] == round(26 / 24 * 1e6)
    assert (frame["generated_us"], frame["decoded_us"]) == (START_US + 26_000, START_US + 26_300)
    assert frame["checked_us"] > frame["encoded_us"]
    assert 80 < frame["vmaf"] <= 100
    assert 30 < frame["psnr_y"] <= 100
    assert 0.9 < frame["ssim"] <= 1
    assert 16 < frame["luma"] < 235
    assert frame["packet_bytes"] > 0
    assert frame["picture_type"] in ("P", "B")


def test_times_of_frames_run_on_over_pieces_in_exact_steps(film: Film) -> None:
    times = [pts for (pts,) in ask(film.settings, "SELECT pts_us FROM frames WHERE job_id = 'film' ORDER BY frame")]
    assert times == [round(frame * 1_000_000 / 24) for frame in range(3 * PIECE)]
    keyframes = ask(film.settings, "SELECT frame FROM frames WHERE job_id = 'film' AND keyframe ORDER BY frame")
    assert keyframes == [(0,), (24,), (48,)]


def test_a_video_of_checked_pieces_is_not_decoded_again(film: Film) -> None:
    found = ask(film.settings, "SELECT job_id, verdict, decoded_frames, pieces FROM videos ORDER BY job_id")
    assert found == [("film", "pass", 0, 3), ("short", "pass", 0, 1)]


@pytest.mark.parametrize("starts", [(0, 24), (0, 25, 48)])
def test_a_video_that_is_not_known_from_its_pieces_is_decoded(film: Film, starts: tuple[int, ...]) -> None:
    (assembled,) = [e for e in map(event_of, film.messages) if isinstance(e, VideoAssembled) and e.job_id == JOB]
    bench = bench_of(film.settings, Database(film.settings), "check-videos-1")
    measured = check_video(replace(assembled, piece_starts=starts), bench).measured
    assert measured.facts is not None
    assert measured.facts.pictures is not None
    assert len(measured.facts.pictures.luma) == 3 * PIECE


def test_a_piece_of_another_job_proves_nothing(film: Film) -> None:
    (assembled,) = [e for e in map(event_of, film.messages) if isinstance(e, VideoAssembled) and e.job_id == JOB]
    bench = bench_of(film.settings, Database(film.settings), "check-videos-1")
    measured = check_video(replace(assembled, job_id="other"), bench).measured
    assert measured.facts is not None
    assert measured.facts.pictures is not None


def test_a_rejected_seam_supersedes_the_frames_it_followed(
    bench: Bench, piece: PieceStitched, clickhouse_settings: Settings
) -> None:
    handler = CheckPieces(bench)
    handler(message(replace(piece, piece=1)))
    assert ask(clickhouse_settings, "SELECT count() FROM frames") == [(12,)]
    handler(message(rejected(1, 2)))
    assert ask(clickhouse_settings, "SELECT count() FROM frames") == [(0,)]
    assert ask(clickhouse_settings, "SELECT attempt, outcome, reason FROM pieces") == [(2, "rejected", "ghosting")]
    assert ask(clickhouse_settings, "SELECT accepted, frame FROM seams") == [(False, -1)]


def test_an_old_attempt_that_comes_late_is_not_seen(
    bench: Bench, piece: PieceStitched, clickhouse_settings: Settings
) -> None:
    handler = CheckPieces(bench)
    handler(message(replace(piece, attempt=2, request_hash="2" * 32)))
    handler(message(piece))
    assert ask(clickhouse_settings, "SELECT DISTINCT attempt FROM frames") == [(2,)]
    assert ask(clickhouse_settings, "SELECT attempt FROM pieces") == [(2,)]


def test_a_piece_without_its_file_has_a_row_with_the_reason(
    bench: Bench, piece: PieceStitched, clickhouse_settings: Settings
) -> None:
    gone = replace(piece, video=replace(piece.video, uri=piece.video.uri + "x"))
    (answer,) = CheckPieces(bench)(message(gone))
    assert isinstance(answer, PieceChecked)
    assert (answer.verdict, answer.scores.frames) == (Verdict.QUARANTINE, 0)
    assert ask(clickhouse_settings, "SELECT verdict, finding_gates, vmaf_mean FROM pieces") == [
        ("quarantine", ["blob"], None)
    ]
    assert ask(clickhouse_settings, "SELECT count() FROM frames") == [(0,)]


class Killed(BaseException):
    """As kill -9: nothing catches it."""


class Mortal(Database):
    """Dies instead of the insert of that number."""

    def __init__(self, settings: Settings, dies_at: int) -> None:
        super().__init__(settings)
        self.left = dies_at

    def insert(self, rows: Rows) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1
        super().insert(rows)


@pytest.mark.parametrize("inserts", [0, 1, 2])
def test_a_worker_killed_between_two_inserts_leaves_every_row_once(
    clickhouse_settings: Settings, bench: Bench, piece: PieceStitched, inserts: int
) -> None:
    dying = replace(bench, database=Mortal(clickhouse_settings, inserts))
    with pytest.raises(Killed):
        CheckPieces(dying)(message(piece))
    CheckPieces(bench)(message(piece))
    counts = [len(rows_of(clickhouse_settings, log)) for log in ("piece_log", "seam_log", "frame_log")]
    assert counts == [1, 1, 12]


def test_a_worker_killed_between_rows_and_verdict_measures_again_and_doubles_nothing(
    clickhouse_settings: Settings, bench: Bench, piece: PieceStitched
) -> None:
    CheckPieces(bench)(message(piece))
    before = rows_of(clickhouse_settings, "frame_log"), rows_of(clickhouse_settings, "piece_log")
    afresh = replace(bench, objects=forgetful(bench.objects))
    (answer,) = CheckPieces(afresh)(message(piece))
    assert isinstance(answer, PieceChecked)
    assert answer.verdict is Verdict.PASS
    assert (rows_of(clickhouse_settings, "frame_log"), rows_of(clickhouse_settings, "piece_log")) == before


def forgetful(objects: Objects) -> Objects:
    """The same store after a crash before the manifest was written."""
    (manifest,) = Path(objects.url.removeprefix("file://")).glob("manifests/checked-*")
    manifest.unlink()
    return Objects(objects.url)


def test_a_check_waits_for_a_clickhouse_that_is_away_and_then_answers(
    own_clickhouse: LocalClickHouse, bench: Bench, piece: PieceStitched, tmp_path: Path
) -> None:
    settings = Settings(
        clickhouse=own_clickhouse.url("line"),
        clickhouse_password=own_clickhouse.password,
        objects=bench.objects.url,
        state=tmp_path / "own",
    )
    database = Database(settings)
    own_clickhouse.kill()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(CheckPieces(bench_of(settings, database, "check-pieces-0")), message(piece))
        assert not threading.Event().wait(1.0)
        assert not waiting.done()
        own_clickhouse.restart()
        (answer,) = waiting.result(30)
    assert isinstance(answer, PieceChecked)
    assert ask(settings, "SELECT count() FROM frames") == [(12,)]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"request_hash": "../../up"}, "request_hash"),
        ({"frames": 0}, "frames"),
        ({"generated_us": (1, 2)}, "generated_us"),
        ({"start_frame": -1}, "start_frame"),
        ({"reference_head_context": -1}, "reference_head_context"),
        ({"attempt": 70_000}, "value"),
    ],
)
def test_a_piece_that_makes_no_sense_is_bad_input(
    bench: Bench, piece: PieceStitched, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInputError) as error:
        CheckPieces(bench)(message(replace(piece, **change)))
    assert error.value.field == field


def test_a_record_that_does_not_belong_here_is_bad_input(bench: Bench, piece: PieceStitched) -> None:
    with pytest.raises(BadInputError, match="PieceStitched"):
        CheckVideos(bench)(message(piece))
    with pytest.raises(BadInputError, match="key"):
        CheckPieces(bench)(message(piece, key=b"another"))
    for value in (None, b"", b"{}", b"\0\0\0\0\x01 broken"):
        with pytest.raises(BadInputError):
            CheckPieces(bench)(replace(message(piece), value=value))


def test_rows_without_a_traceparent_have_the_trace_of_their_job(bench: Bench, clickhouse_settings: Settings) -> None:
    CheckPieces(bench)(replace(message(generated(0, 1)), headers=()))
    assert ask(clickhouse_settings, "SELECT trace_id FROM segments") == [(trace_id(trace_root(JOB)),)]


def test_every_column_of_every_log_is_written_by_somebody(film: Film) -> None:
    columns = connect(film.settings).query(
        "SELECT table, name, type FROM system.columns WHERE database = currentDatabase() AND endsWith(table, '_log')"
    )
    silent: set[str] = set()
    for log in LOGS:
        kinds = {name: kind for table, name, kind in columns.result_rows if table == log}
        zeros = {name: re.sub(r"^Nullable\((.*)\)$", r"\1", kind) for name, kind in kinds.items()}
        written = [f"countIf({name} != defaultValueOfTypeName('{kind}'))" for name, kind in zeros.items()]
        (counts,) = ask(film.settings, f"SELECT {', '.join(written)} FROM {log}")  # noqa: S608 (names of our own)
        silent |= {f"{log}.{name}" for name, count in zip(kinds, counts, strict=True) if not count}
    silent = {column for column in silent if not column.startswith("video_log.finding_")}
    assert silent == {
        "job_log.reason",
        "frame_log.frozen",
        "video_log.decoded_frames",
        "video_log.corrupt_frames",
        "video_log.worst_step_error_us",
        "finish_log.warnings",
    }, "a film without such trouble"
