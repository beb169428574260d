"""Every query of docs/sql.md, on rows that QC wrote."""

import re
from pathlib import Path
from typing import Any

import pytest

from infra.clickhouse import connect
from tests.qc.film import PIECE, Film

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
QUESTIONS: dict[str, str] = dict(re.findall(r"^## (.+?)\n.*?```sql\n(.+?)```", PAGE, re.MULTILINE | re.DOTALL))


def answer(film: Film, question: str) -> list[dict[str, Any]]:
    return list(connect(film.settings).query(QUESTIONS[question]).named_results())


def test_the_page_has_at_least_ten_questions_each_with_its_query() -> None:
    assert len(QUESTIONS) >= 10
    assert PAGE.count("```sql") == PAGE.count("\n## ") == len(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_query_has_an_answer(film: Film, question: str) -> None:
    assert answer(film, question)


def test_a_frame_is_traced_to_the_attempt_of_the_segment_it_is_from(film: Film) -> None:
    (frame,) = answer(film, "Where did this frame come from?")
    assert (frame["segment"], frame["segment_attempt"], frame["piece_attempt"]) == (1, 3, 2)
    assert frame["latents_uri"].endswith("segments/1-3-latents")
    assert frame["blended"] is True


def test_the_rejected_seam_is_the_worst(film: Film) -> None:
    worst = answer(film, "Which seams are the worst?")[0]
    assert (worst["piece"], worst["attempt"], worst["accepted"], worst["reason"]) == (1, 1, False, "ghosting")


def test_retries_are_counted_for_the_version_that_had_them(film: Film) -> None:
    rows = {row["engine_version"]: row for row in answer(film, "Which engine version has to try again, and why?")}
    assert (rows["1.0"]["tries"], rows["1.0"]["failed"], rows["1.0"]["retries"]) == (6, 1, 3)
    assert rows["1.0"]["failures"] == ["crashed"]
    assert (rows["1.1"]["tries"], rows["1.1"]["failed"]) == (1, 0)


def test_videos_are_complete(film: Film) -> None:
    rows = {row["job_id"]: row for row in answer(film, "Is every frame there once, at its exact time?")}
    assert rows["film"]["announced"] == 3 * PIECE
    for row in rows.values():
        assert (row["rows_too_many"], row["frames_too_many"]) == (0, 0)
        assert row["worst_error_us"] <= 1


def test_all_bits_are_of_some_picture_type(film: Film) -> None:
    rows = answer(film, "Where do the bits go?")
    assert {row["picture_type"] for row in rows} == {"I", "P", "B"}
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.01)
    assert sum(row["frames"] for row in rows) == 3 * PIECE
