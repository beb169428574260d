"""The report for programs: valid by its published schema, and true."""

import json
from datetime import datetime
from typing import Any

import jsonschema
import pytest

from infra.cli.report_json import SCHEMA, json_report, page, schema
from infra.clickhouse import connect
from schemas.codec import decode
from schemas.records import JobChanged, VideoFinished
from tests.qc.film import PIECE, Film


@pytest.fixture(scope="module")
def report(film: Film) -> Any:
    events = [decode(message.value or b"") for message in film.messages if message.job_id == "film"]
    (video,) = (event for event in events if isinstance(event, VideoFinished))
    job = [event for event in events if isinstance(event, JobChanged)][-1]
    return json.loads(page(json_report(video, job, connect(film.settings))))


def test_the_published_schema_is_that_of_the_program() -> None:
    assert json.loads(SCHEMA.read_text()) == schema(), "run: python -m infra.cli.report_json"


def test_a_report_is_valid_by_its_schema_and_one_with_a_hole_is_not(report: Any) -> None:
    validator = jsonschema.Draft202012Validator(
        json.loads(SCHEMA.read_text()), format_checker=jsonschema.FormatChecker()
    )
    validator.validate(report)
    for part in report:
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({name: value for name, value in report.items() if name != part})
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(report | {"pieces": [report["pieces"][0] | {"frames": "many"}]})


def test_it_says_of_each_piece_its_newest_attempt_and_of_findings_all(report: Any) -> None:
    assert [(piece["piece"], piece["attempt"], piece["start_frame"]) for piece in report["pieces"]] == [
        (0, 1, 0),
        (1, 2, PIECE),
        (2, 2, 2 * PIECE),
    ]
    assert all(piece["scores"]["vmaf_mean"] > 80 for piece in report["pieces"])
    black = next(found for found in report["findings"] if found["finding"]["gate"] == "black")
    assert (black["piece"], black["attempt"], black["finding"]["verdict"]) == (2, 1, "regenerate")
    assert black["at_s"] == pytest.approx(black["finding"]["frame"] / 24)


def test_its_times_are_in_order_and_in_utc(report: Any) -> None:
    job, pieces = report["job"], report["pieces"]
    for piece in pieces:
        moments = [datetime.fromisoformat(piece[name]) for name in ("stitching_at", "stitched_at")]
        assert moments == sorted(moments)
        assert moments[0].utcoffset().total_seconds() == 0  # pyright: ignore[reportOptionalMemberAccess]
    assert datetime.fromisoformat(job["submitted_at"]) < datetime.fromisoformat(job["finished_at"])
    assert {step["name"] for step in report["timing"]["steps"]} >= {"generate", "stitch", "check pieces", "assemble"}
    (seam,) = report["seams"]  # all that the film announces
    assert (seam["piece"], seam["frame"], seam["seam"]["kind"]) == (0, 0, "continuous")
