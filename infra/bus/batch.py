"""Decisions that are not yet written: what they read, what they change, what goes out."""

from collections.abc import Mapping
from dataclasses import replace

from infra.bus.decision import Decision
from infra.bus.message import Partition
from infra.bus.outputs import Cause, Output, outputs_of
from infra.bus.rows import Rows
from schemas.records import JobState
from schemas.rows import RowEncoder


class Batch:
    """Changes on top of `rows`, which stay as they are until `apply`."""

    def __init__(self, rows: Mapping[int, Rows], encoder: RowEncoder) -> None:
        self._rows = rows
        self._encoder = encoder
        self._changed: dict[tuple[int, str], tuple[JobState, Cause]] = {}
        self._values: dict[tuple[int, str], bytes] = {}
        """Of the changed rows, once they are to be written."""
        self.outputs: list[Output] = []
        self.offsets: dict[Partition, int] = {}
        """The next ones to read."""

    def row(self, partition: int, job_id: str) -> JobState | None:
        """The job's row with what this batch has done to it."""
        changed = self._changed.get((partition, job_id))
        return changed[0] if changed else self._rows[partition].get(job_id)

    def add(self, partition: int, decision: Decision, cause: Cause) -> None:
        """Take up a decision on a row of `partition`."""
        self.outputs += outputs_of(decision.events, cause)
        if decision.state:
            self._changed[partition, decision.state.job_id] = decision.state, cause

    def records(self) -> list[Output]:
        """All that is to be written: of every changed row only its last state."""
        records = list(self.outputs)
        for place, (state, cause) in self._changed.items():
            value = self._values[place] = self._encoder.encode(state)
            row = outputs_of([state], replace(cause, id=f"{cause.id}/row"), lambda _, value=value: value)
            records += (replace(output, partition=place[0]) for output in row)
        return records

    def apply(self) -> None:
        """What `records` gave is committed: change the rows."""
        for place, (state, _) in self._changed.items():
            self._rows[place[0]].put(state, self._values[place])
