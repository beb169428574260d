"""Several takes on one card: admitted by the ledger's numbers, refused with them, and idle ones give way and come back."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from gpu_consumers.engines.causal_dit.card import LIMIT, Card
from gpu_consumers.engines.causal_dit.engine import CausalDitEngine
from gpu_consumers.engines.causal_dit.ledger import Ledger, predict
from gpu_consumers.engines.causal_dit.models import MODELS
from gpu_consumers.engines.engine import EngineError, NoRoomError
from gpu_consumers.held import Held, HeldStates
from gpu_consumers.room import restored
from schemas.records import FailureKind, SegmentRequested
from tests.causal_dit.test_engine import request, run
from tests.gpu_consumers.requests import blob


@cache
def tiny() -> Ledger:
    wanted = request(0).format
    return predict(MODELS["tiny"], wanted.width, wanted.height, torch.float32)


def room_for(takes: int) -> str:
    """What the environment says: room for this many takes and half of another."""
    return f"{(tiny().total + (takes - 0.5) * tiny().per_job()) / 1024:.3f}KB"


def of(job_id: str, segment: int = 0, **options: str) -> SegmentRequested:
    wanted = request(segment)
    return replace(wanted, job_id=job_id, engine_options={**wanted.engine_options, **options})


def test_weights_are_counted_once_and_caches_for_every_take_that_is_alive() -> None:
    ledger = tiny()
    card = Card(None)
    first, second = card.admit("tiny", ledger), card.admit("tiny", ledger)
    assert card.needed() == ledger.total + ledger.per_job()
    assert card.needed(("other", ledger)) == 2 * ledger.total - ledger.activations + ledger.per_job()
    del first
    assert card.needed() == ledger.total
    assert card.models == {"tiny"}
    del second
    assert card.needed() == 0


def test_what_does_not_fit_is_refused_with_the_numbers_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, room_for(1))
    engine = CausalDitEngine()
    first = engine.restore(of("a"), [])
    with pytest.raises(NoRoomError) as caught:
        engine.restore(of("b"), [])
    assert (caught.value.kind, caught.value.others) == (FailureKind.OUT_OF_MEMORY, 1)
    for part in ("weights", "kv cache", "cross kv", "vae weights", "vae cache", "activations", "1 other take"):
        assert part in caught.value.reason
    del first
    assert engine.restore(of("b"), [])


def test_an_idle_take_makes_room_and_comes_back_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [run(state, segment) for state in [CausalDitEngine().restore(request(0), [])] for segment in range(2)]
    monkeypatch.setenv(LIMIT, room_for(1))
    engine, held = CausalDitEngine(), HeldStates(8)
    state = restored(engine, of("a"), [], held, beat=list)
    latents, _ = run(state, 0)
    held.put("a", Held(state=state, digests=("a0",)))
    del state
    other = restored(engine, of("b"), [], held, beat=list)
    again = replace(of("a", 1), latent_ref=(blob("a0"),))
    assert not held.holds(again)
    assert held.take(again) is None
    held.put("b", Held(state=other, digests=("b0",)))
    del other
    back = restored(engine, again, [latents], held, beat=list)
    for found, expected in zip(run(back, 1), whole[1], strict=True):
        assert np.array_equal(found, expected)


def test_a_take_at_work_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, room_for(1))
    engine, held = CausalDitEngine(), HeldStates(8)
    working = [engine.restore(of("a"), [])]
    beats: list[int] = []

    def beat() -> None:
        beats.append(engine.card.needed())
        if len(beats) == 2:
            held.put("a", Held(state=working.pop(), digests=("a0",)))

    assert restored(engine, of("b"), [], held, beat)
    assert len(beats) == 2


def test_what_would_not_fit_on_an_empty_card_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, room_for(0))
    with pytest.raises(NoRoomError, match="beside 0 other takes"):
        restored(CausalDitEngine(), of("a"), [], HeldStates(8), beat=lambda: pytest.fail("it waits"))


def test_a_smaller_cache_fits_where_the_whole_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"window": "6", "sink": "0", "kv": "int8"}
    wanted = of("a", **small)
    window, kept = replace(MODELS["tiny"].window, latents=6, sink=0), replace(MODELS["tiny"].kept, precision="int8")
    need = predict(replace(MODELS["tiny"], window=window, kept=kept), 32, 16, torch.float32)
    assert need.kv_cache < tiny().kv_cache / 3
    monkeypatch.setenv(LIMIT, f"{(need.total + tiny().total) / 2 / 1024:.3f}KB")
    engine = CausalDitEngine()
    with pytest.raises(NoRoomError):
        engine.restore(of("a"), [])
    assert engine.restore(wanted, [])


def test_a_limit_that_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "plenty")
    with pytest.raises(EngineError, match="24GB, not 'plenty'"):
        CausalDitEngine().restore(of("a"), [])
