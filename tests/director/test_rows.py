"""Rows are written part by part, and come out as if they were written whole."""

from dataclasses import replace

from infra.bus.clients import MAX_RECORD_BYTES
from schemas import records as r
from schemas.codec import decode, encode
from schemas.rows import RowEncoder
from streams.intake import MAX_RENDITION_PIECES, MAX_SEGMENTS
from tests.director.builders import Line, finding, generated, piece_checked, prompt, rejected, stitched


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


def test_a_row_that_uses_no_new_field_is_read_by_the_last_release_and_one_that_does_changes_over_as_a_whole() -> None:
    line, encoder = Line(), RowEncoder()
    line.run(prompt(width=1280, height=720, renditions=("web-720p",)))
    plain = next(row for row in lives()[0] if row.pieces and row.pieces[0].video)
    assert encode(plain)[:5] == encode(replace(plain, pieces=(), segments=()))[:5]
    for row in line.rows:
        without = replace(row, plan=replace(row.plan, renditions=()) if row.plan else None)
        for each in (without, row, without):
            assert encoder.encode(each) == encode(each)
    assert encode(line.rows[0])[:5] != encode(plain)[:5]


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


def test_the_row_of_the_longest_job_with_the_longest_names_fits_into_a_record() -> None:
    line = Line()
    line.send(
        prompt(
            job_id="j" * 100,
            duration_s=(MAX_SEGMENTS * 32 + 8) / 24,
            text="x" * 10_000,
            negative=("y" * 10_000,) * 9,
            renditions=("web-360p",) * (MAX_RENDITION_PIECES // MAX_SEGMENTS),
        )
    )
    request = generated(line.last(r.SegmentRequested))
    long = replace(request.latents, uri="s3://" + "b" * 100 + "/jobs/" + "j" * 100 + "/segments/1999-1.safetensors")
    remark = replace(finding(r.Verdict.PASS, frame=1 << 20), detail="d" * 1000)
    line.send(replace(request, latents=long, frames=long))
    piece = stitched(line.last(r.PieceRequested), video=long)
    piece = replace(piece, renditions=tuple(replace(each, video=long) for each in piece.renditions))
    line.send(piece)
    line.send(piece_checked(piece, findings=(remark,) * 20))
    segments, pieces = line.job.segments, line.job.pieces
    full = replace(line.job, segments=segments[:1] * len(segments), pieces=pieces[:1] * len(pieces))
    assert len(segments) == MAX_SEGMENTS
    assert full.pieces[0].warnings
    assert full.pieces[0].renditions
    assert len(encode(full)) < MAX_RECORD_BYTES
