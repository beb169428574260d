"""Prompt embeddings on a stated workload: LRU-K (K = 2, 60 s) against plain LRU of the same size, in hit rate and time per prompt.

The workload is a card's: four jobs at once, of 24 segments in 3 shots each (two minutes), whichever is first in the queue goes next; a
segment takes 4 s. A state that is still held needs no embedding; two are held, so a segment often begins from references
and asks for its shot's embedding again. The scenarios of jobs follow Zipf's law (30 of them, exponent 1.1); every fifth job is of
somebody's own that never comes back. 64 embeddings are kept, as in the engine. A second figure is of the same jobs when every state is
held: then each shot asks once, and only other jobs of its scenario can have filled the cache.

The encoder is a umT5 small enough for the CPU; what matters is how often it runs.
"""

import statistics
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from transformers import ByT5Tokenizer, UMT5Config, UMT5EncoderModel

from gpu_consumers.engines.causal_dit.text import EmbeddingCache, Encoder, Umt5

_SCENARIOS, _SHOTS, _JOBS, _KEPT = 30, 3, 3_000, 64
_EXPONENT = 1.1
_OWN = 5
"""One job in so many is of a scenario of its own."""
_AT_ONCE, _SEGMENTS, _HELD = 4, 24, 2
_STEP_S = 4.0
_TIMED = 600


def measure() -> dict[str, float]:
    """Hit rates over all prompts; milliseconds per prompt over the last ones, with the encoder really run."""
    torch.set_num_threads(1)
    prompts, shots = list(workload(held=_HELD)), list(workload(held=_AT_ONCE))
    ours, plain = _hits(prompts), _lru_hits(prompts)
    encode, first, second = _encoder(), _Switch(), _Switch()
    kept = EmbeddingCache(first, capacity=_KEPT, clock=_Clock())
    cold = [_seconds(lambda text=text: encode(text)) for text in prompts[:20]]
    uncached_ms = statistics.mean(cold) * 1e3
    cached_ms = _latency_ms(kept.get, first, prompts, encode)
    return {
        "embedding_hit_rate": ours,
        "embedding_lru_hit_rate": plain,
        "embedding_shot_hit_rate": _hits(shots),
        "embedding_shot_lru_hit_rate": _lru_hits(shots),
        "embedding_time_ratio": cached_ms / uncached_ms,
        "embedding_lru_time_ratio": _latency_ms(_Lru(second).get, second, prompts, encode) / uncached_ms,
    }


def workload(held: int, seed: int = 7) -> Iterator[str]:
    """The prompts in their order, where a card holds the states of so many jobs."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, _SCENARIOS + 1) ** _EXPONENT
    scenarios = iter(random.choice(_SCENARIOS, size=_JOBS, p=weights / weights.sum()).tolist())
    names = (f"own {job}" if random.random() < 1 / _OWN else f"{scenario}" for job, scenario in enumerate(scenarios))
    films = (
        [
            f"scenario {name}, shot {n * _SHOTS // _SEGMENTS}: a slow move over the harbour at dusk"
            for n in range(_SEGMENTS)
        ]
        for name in names
    )
    working = [iter(film) for film in islice(films, _AT_ONCE)]
    states: OrderedDict[int, str] = OrderedDict()
    while working:
        job = working[random.integers(len(working))]
        prompt = next(job, None)
        if prompt is None:
            working.remove(job)
            states.pop(id(job), None)
            working.extend(iter(film) for film in islice(films, 1))
            continue
        if states.get(id(job)) != prompt:
            yield prompt
        states[id(job)] = prompt
        states.move_to_end(id(job))
        if len(states) > held:
            states.popitem(last=False)


class _Lru:
    """The peer: the same size, the least recently used goes first."""

    def __init__(self, encode: Encoder) -> None:
        self._encode = encode
        self._held: OrderedDict[str, Tensor] = OrderedDict()
        self.hits = 0

    def get(self, prompt: str) -> Tensor:
        if prompt in self._held:
            self.hits += 1
        else:
            self._held[prompt] = self._encode(prompt)
        self._held.move_to_end(prompt)
        if len(self._held) > _KEPT:
            self._held.popitem(last=False)
        return self._held[prompt]


class _Clock:
    """Virtual seconds."""

    now = 0.0

    def __call__(self) -> float:
        self.now += _STEP_S
        return self.now


def _hits(prompts: list[str]) -> float:
    cache = EmbeddingCache(lambda _: torch.empty(0), capacity=_KEPT, clock=_Clock())
    for prompt in prompts:
        cache.get(prompt)
    return cache.hits / len(prompts)


def _lru_hits(prompts: list[str]) -> float:
    cache = _Lru(lambda _: torch.empty(0))
    for prompt in prompts:
        cache.get(prompt)
    return cache.hits / len(prompts)


def _latency_ms(get: Callable[[str], object], switch: "_Switch", prompts: list[str], encode: Encoder) -> float:
    """Filled without the encoder up to the timed prompts."""
    for prompt in prompts[:-_TIMED]:
        get(prompt)
    switch.encode = encode
    return statistics.mean(_seconds(lambda prompt=prompt: get(prompt)) for prompt in prompts[-_TIMED:]) * 1e3


class _Switch:
    """An encoder that costs nothing until it is given a real one."""

    encode: Encoder | None = None

    def __call__(self, text: str) -> Tensor:
        return self.encode(text) if self.encode else torch.empty(0)


def _seconds(work: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    work()
    return time.perf_counter() - begun_s


def _encoder() -> Umt5:
    torch.manual_seed(1)
    config = UMT5Config(vocab_size=384, d_model=256, d_kv=64, d_ff=512, num_layers=4, num_heads=4)
    return Umt5(UMT5EncoderModel(config), ByT5Tokenizer(), 128)
