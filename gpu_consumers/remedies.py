"""What the failures of segments ask of the next engine process: another device, or only that it is another process."""

from gpu_consumers.faults import Change, retry
from gpu_consumers.memory.placement import device_for_slot
from gpu_consumers.memory.topology import Device, read_topology
from schemas.records import FailureKind, SegmentRequested


class Remedies:
    """Of one worker. What a job's own options can do is for the director: they are part of its requests (`streams/planner.py`)."""

    def __init__(self, slot: int) -> None:
        """`slot`: the worker's number on this machine, which decides its device."""
        self._slot = slot
        self._avoided: set[str] = set()
        """Devices on which a segment has failed in a way that asks for another one."""
        self._renew = False
        self.device: Device | None = None
        """Of the running process."""

    def begin(self) -> Device | None:
        """A process is about to start: its device."""
        self._renew = False
        self.device = device_for_slot(read_topology(), self._slot, self._avoided)
        return self.device

    def failed(self, request: SegmentRequested, kind: FailureKind) -> None:
        """A segment has failed, whether its process is gone or has said so itself."""
        changes = retry(request, kind, request.attempt).changes
        if self.device and Change.OTHER_DEVICE in changes:
            self._avoided.add(self.device.uuid)
        # A process that answers that there is no room is whole.
        self._renew |= Change.RESTART in changes and kind is not FailureKind.OUT_OF_MEMORY

    @property
    def due(self) -> bool:
        """The process is to take nothing more, and to be replaced once it has nothing in hand: between segments, of all jobs."""
        return self._renew
