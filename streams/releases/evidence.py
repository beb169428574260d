"""The rows that a release is judged by, from ClickHouse: counts of both sides per step, and what single jobs have about them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from clickhouse_connect.driver.client import Client

from schemas.records import ReleaseChanged, ReleaseStage
from schemas.topics import Event
from streams.releases.cause import Ended, cause_of
from streams.releases.gate import Counts, Step, judged

_COUNTS = tuple(field.name for field in fields(Counts))
_MOST_JOBS = 5000
"""The newest ones; for a cause, not for the verdict."""
_STEPS = f"SELECT step, side, {', '.join(_COUNTS)} FROM arms WHERE release = {{release:String}} ORDER BY step"  # noqa: S608 (names of our own)
_BAD: Mapping[str, str] = {
    "failed": "j.stage = 'failed'",
    "warned": "j.stage = 'finished' AND f.warnings > 0",
    "stalled": "p.stalled",
    "slow_start": "p.slow_start",
    "decode_errors": "p.errors",
}
_ENDED = f"""
WITH mine AS
(
    SELECT job_id, arm, stage, changed_us FROM jobs
    WHERE splitByChar('.', arm)[1] = {{release:String}} AND stage IN ('finished', 'failed')
    ORDER BY changed_us DESC LIMIT {_MOST_JOBS}
)
SELECT j.job_id AS job_id, endsWith(j.arm, '/candidate') AND BAD AS bad, t.traits AS traits
FROM mine AS j
LEFT JOIN (SELECT job_id, length(warnings) AS warnings FROM finish_log) AS f ON f.job_id = j.job_id
LEFT JOIN
(
    SELECT job_id, max(stalls) > 0 AS stalled, max(decode_errors) > 0 AS errors,
        max(first_frame_ms < 0 OR first_frame_ms > 2000) AS slow_start
    FROM plays GROUP BY job_id
) AS p ON p.job_id = j.job_id
LEFT JOIN
(
    SELECT job_id, groupUniqArray((kind, name)) AS traits FROM
    (
        SELECT job_id, 'worker' AS kind, worker AS name FROM segment_log
        UNION ALL SELECT job_id, 'failure', failure FROM segment_log WHERE outcome = 'failed'
        UNION ALL SELECT job_id, 'segment', toString(segment) FROM segment_log WHERE outcome = 'failed'
        UNION ALL SELECT job_id, 'stitcher', stitcher FROM piece_log
        UNION ALL SELECT job_id, 'segment', toString(piece) FROM piece_log WHERE notEmpty(finding_gates) OR outcome = 'rejected'
        UNION ALL SELECT job_id, 'gate', arrayJoin(finding_gates) FROM piece_log
        UNION ALL SELECT job_id, 'gate', arrayJoin(finding_gates) FROM video_log
    )
    WHERE job_id IN (SELECT job_id FROM mine)
    GROUP BY job_id
) AS t ON t.job_id = j.job_id
ORDER BY j.changed_us DESC
"""  # noqa: S608 (a number and names of our own)


def looked_at(client: Client, releases: Iterable[ReleaseChanged], now_us: int) -> list[Event]:
    """What becomes of releases now, with the cause of each that is rolled back. Raises: DatabaseError."""
    events: list[Event] = []
    for release in releases:
        after = judged(release, steps_of(client, release.name), now_us)
        if after is None:
            continue
        events.append(after)
        if after.stage is ReleaseStage.ROLLED_BACK:
            gate = max(after.looks, key=lambda look: look.level).gate
            events.append(cause_of(release.name, gate, ended_of(client, release.name, gate), now_us))
    return events


def steps_of(client: Client, release: str) -> list[Step]:
    """Counts of both sides at every share so far; empty while no job has come. Raises: DatabaseError."""
    rows = _rows(client, _STEPS, release)
    sides: dict[tuple[int, str], Counts] = {
        (row[0], row[1]): Counts(**dict(zip(_COUNTS, row[2:], strict=True))) for row in rows
    }
    return [
        Step(candidate=sides.get((step, "candidate"), Counts()), control=sides.get((step, "control"), Counts()))
        for step in sorted({step for step, _ in sides})
    ]


def ended_of(client: Client, release: str, gate: str) -> list[Ended]:
    """The newest jobs of both sides that have ended. Raises: DatabaseError."""
    rows = _rows(client, _ENDED.replace("BAD", f"({_BAD[gate]})"), release)
    return [
        Ended(job_id=job_id, bad=bool(bad), traits=frozenset((str(kind), str(name)) for kind, name in traits if name))
        for job_id, bad, traits in rows
    ]


def _rows(client: Client, query: str, release: str) -> Sequence[Sequence[Any]]:
    return client.query(query, {"release": release}).result_rows
