"""Memory for one more engine state: what is held but idle goes first, it can be replayed exactly; then those at work are waited for."""

import logging
import time
from collections.abc import Callable, Sequence

from gpu_consumers.engines.engine import Engine, EngineState, Latents, NoRoomError
from gpu_consumers.held import HeldStates
from schemas.records import SegmentRequested

_PATIENCE_S = 60.0
"""For segments that are decoded and stored meanwhile: their states are held, and idle, after that."""
_PAUSE_S = 0.1
log = logging.getLogger(__name__)


def restored(
    engine: Engine, request: SegmentRequested, latents: Sequence[Latents], held: HeldStates, beat: Callable[[], object]
) -> EngineState:
    """`engine.restore`, with room made for it. Raises: EngineError; NoRoomError if the state does not fit even so."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return engine.restore(request, latents)
        except NoRoomError as error:
            job_id = held.drop_idlest()
            if job_id:
                log.info("%s segment %d: the held state of %s makes room", request.job_id, request.segment, job_id)
                continue
            if not error.others or time.monotonic() > until_s:
                raise
        beat()
        time.sleep(_PAUSE_S)
