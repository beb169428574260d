"""Prompts to embeddings: umT5 through transformers, run once per prompt; what was computed is kept by use (LRU-K)."""

import re
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from transformers import AutoTokenizer, ByT5Tokenizer, PreTrainedTokenizerBase, UMT5Config, UMT5EncoderModel


class Encoder(Protocol):
    """Text to the transformer's context."""

    def __call__(self, text: str) -> Tensor:
        """[text_tokens, text_dim], zeros behind the text's own tokens."""
        ...


class Umt5:
    """A text encoder with its tokenizer. Wan's is umT5-xxl: 11.4 GB in bf16, so it can live on another device than the transformer."""

    def __init__(self, model: UMT5EncoderModel, tokenizer: PreTrainedTokenizerBase, tokens: int) -> None:
        self._model, self._tokenizer, self._tokens = model.eval(), tokenizer, tokens

    @torch.no_grad()
    def __call__(self, text: str) -> Tensor:
        batch = self._tokenizer(
            cleaned(text), max_length=self._tokens, padding="max_length", truncation=True, return_tensors="pt"
        ).to(self._model.device)
        mask = batch["attention_mask"]
        hidden = self._model(batch["input_ids"], attention_mask=mask).last_hidden_state
        return (hidden * mask[..., None])[0]


def load_umt5(folder: Path, tokens: int, dtype: torch.dtype) -> Umt5:
    """From a local folder in transformers' layout, with its tokenizer in it or beside it. Nothing is downloaded.

    Raises: OSError if it is not there.
    """
    model = UMT5EncoderModel.from_pretrained(folder, dtype=dtype, local_files_only=True)
    beside = folder.with_name("tokenizer")
    words = AutoTokenizer.from_pretrained(beside if beside.is_dir() else folder, local_files_only=True)
    return Umt5(model, words, tokens)


def tiny_umt5(tokens: int, width: int, seed: int) -> Umt5:
    """Random weights over bytes, for machines without any."""
    torch.manual_seed(seed)
    config = UMT5Config(vocab_size=384, d_model=width, d_kv=width // 2, d_ff=2 * width, num_layers=1, num_heads=2)
    return Umt5(UMT5EncoderModel(config), ByT5Tokenizer(), tokens)


def cleaned(text: str) -> str:
    """As the model was trained: composed characters, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """An embedding and whose it is: `prompt` differs from what was asked only after a near-duplicate hit."""

    tensor: Tensor
    prompt: str
    hit: bool


class EmbeddingCache:
    """Embeddings by exact text; the one whose K-th last use is oldest goes first (LRU-K, O'Neil et al. 1993).

    Uses older than `window_s` do not count, so what was used once goes before what is used again and again; the uses of
    what went are remembered for the window too.
    """

    def __init__(
        self, encode: Encoder, *, capacity: int, clock: Callable[[], float], k: int = 2, window_s: float = 60.0
    ) -> None:
        self._encode, self._capacity, self._clock = encode, capacity, clock
        self._k, self._window_s = k, window_s
        self._held: dict[str, Tensor] = {}
        self._uses: OrderedDict[str, deque[float]] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def get(self, prompt: str) -> Embedded:
        """The embedding of exactly this text, computed if it is not held."""
        now = self._clock()
        held = self._held.get(prompt)
        self._use(prompt, now)
        if held is not None:
            self.hits += 1
            return Embedded(tensor=held, prompt=prompt, hit=True)
        self.misses += 1
        tensor = self._encode(prompt)
        self._held[prompt] = tensor
        while len(self._held) > self._capacity:
            del self._held[min((p for p in self._held if p != prompt), key=lambda p: self._rank(p, now))]
        return Embedded(tensor=tensor, prompt=prompt, hit=False)

    def get_near(self, prompt: str, similarity: float) -> Embedded:
        """Like `get`, but the embedding of a held prompt at least this similar will do (Jaccard of word triples): on request only."""
        wanted = _triples(prompt)
        best = max(self._held, key=lambda p: _jaccard(wanted, _triples(p)), default=prompt)
        return self.get(best if _jaccard(wanted, _triples(best)) >= similarity else prompt)

    def _use(self, prompt: str, now: float) -> None:
        self._uses.setdefault(prompt, deque(maxlen=self._k)).append(now)
        self._uses.move_to_end(prompt)
        for old in list(self._uses):
            if self._uses[old][-1] >= now - self._window_s:
                break
            if old not in self._held:
                del self._uses[old]

    def _rank(self, prompt: str, now: float) -> tuple[float, float]:
        uses = [use for use in self._uses[prompt] if use >= now - self._window_s]
        return (uses[0] if len(uses) == self._k else float("-inf"), self._uses[prompt][-1])


def _triples(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def _jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0
