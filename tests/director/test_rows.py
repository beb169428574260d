"""Rows are written part by part, and come out as if they were written whole."""

from schemas import records as r
from schemas.codec import decode, encode
from schemas.rows import RowEncoder
from tests.director.builders import Line, generated, piece_checked, prompt, rejected, stitched


def lives() -> list[list[r.JobState]]:
    """The rows of jobs that went well, were sent back, failed and were retried, in the order they were written."""
    well, back, again = Line(), Line(), Line()
    well.run(prompt(job_id="well", duration_s=12.0))
    piece = back.until(r.PieceRequested, prompt(job_id="back"), index=1)
    back.run(rejected(piece))
    piece = again.until(r.PieceRequested, prompt(job_id="again"), index=1)
    again.run(stitched(piece), piece_checked(stitched(piece), r.Verdict.QUARANTINE))
    again.run(*again.send(r.RetryRequested(job_id="again")), generated(again.last(r.SegmentRequested)))
    return [line.rows for line in (well, back, again)]


def test_every_row_of_a_job_comes_out_as_the_codec_writes_it() -> None:
    encoder = RowEncoder()
    for rows in lives():
        for row in rows:
            assert encoder.encode(row) == encode(row)
            assert decode(encoder.encode(row)) == row


def test_jobs_that_take_turns_do_not_mix() -> None:
    encoder = RowEncoder()
    for together in zip(*lives(), strict=False):
        for row in together:
            assert encoder.encode(row) == encode(row)


def test_an_older_row_may_be_written_again_after_an_abort() -> None:
    encoder = RowEncoder()
    rows = lives()[1]
    for older, newer in zip(rows, rows[2:], strict=False):
        assert encoder.encode(newer) == encode(newer)
        assert encoder.encode(older) == encode(older)
