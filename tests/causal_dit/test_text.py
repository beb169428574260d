"""Embeddings: the tiny umT5, and the cache that forgets the right ones."""

from pathlib import Path

import torch
from torch import Tensor
from transformers import ByT5Tokenizer, UMT5Config, UMT5EncoderModel

from gpu_consumers.engines.causal_dit.text import EmbeddingCache, Umt5, cleaned, load_umt5, tiny_umt5
from gpu_consumers.engines.shots import described
from schemas.records import Instruction


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def cache_of(clock: Clock, capacity: int = 2) -> tuple[EmbeddingCache, list[str]]:
    asked: list[str] = []

    def encode(text: str) -> Tensor:
        asked.append(text)
        return torch.full((1,), float(len(text)))

    return EmbeddingCache(encode, capacity=capacity, clock=clock), asked


def test_an_embedding_is_padded_with_zeros_and_repeatable() -> None:
    encode = tiny_umt5(tokens=8, width=32, seed=1)
    out = encode("fox")
    assert out.shape == (8, 32)
    assert (out[4:] == 0).all()
    assert (out[:4] != 0).any()
    assert torch.equal(out, tiny_umt5(tokens=8, width=32, seed=1)("  fox\n"))


def test_the_tokenizer_may_lie_beside_the_encoder_as_in_diffusers_repositories(tmp_path: Path) -> None:
    torch.manual_seed(2)
    config = UMT5Config(vocab_size=384, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    model, tokenizer = UMT5EncoderModel(config), ByT5Tokenizer()
    model.save_pretrained(tmp_path / "text_encoder")
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    loaded = load_umt5(tmp_path / "text_encoder", 8, torch.float32)
    assert torch.equal(loaded("a fox"), Umt5(model, tokenizer, 8)("a fox"))


def test_text_is_cleaned_as_the_model_was_trained() -> None:
    assert cleaned(" a\u00a0 fox\n\truns ﬁrst ") == "a fox runs first"
    assert described(Instruction(text="a fox", camera="pan_left")) == "a fox Camera: pan left."
    assert described(Instruction(text="a fox, pan left", camera="pan_left")) == "a fox, pan left"


def test_what_was_used_twice_outlives_what_was_used_once_later() -> None:
    clock = Clock()
    cache, asked = cache_of(clock)
    for clock.now, prompt in enumerate(["often", "often", "once", "new"]):
        cache.get(prompt)
    assert cache.get("often").hit
    assert not cache.get("once").hit
    assert asked == ["often", "once", "new", "once"]


def test_uses_before_the_window_do_not_count() -> None:
    clock = Clock()
    cache, _ = cache_of(clock)
    cache.get("old")
    cache.get("old")
    clock.now = 100.0
    cache.get("fresh")
    cache.get("fresh")
    cache.get("new")
    assert cache.get("fresh").hit
    assert not cache.get("old").hit


def test_a_forgotten_prompt_that_comes_back_soon_counts_as_used_twice() -> None:
    clock = Clock()
    cache, _ = cache_of(clock)
    for clock.now, prompt in enumerate(["a", "b", "c", "a", "d", "e"]):
        cache.get(prompt)
    assert cache.get("a").hit


def test_a_near_duplicate_is_used_on_request_only_and_says_whose_it_is() -> None:
    cache, asked = cache_of(Clock())
    cache.get("A red fox runs over the snow at dawn.")
    near = cache.get_near("a red fox runs over the snow at dawn", 0.9)
    assert (near.hit, near.prompt) == (True, "A red fox runs over the snow at dawn.")
    far = cache.get_near("a red fox sleeps in the snow at night", 0.9)
    assert (far.hit, far.prompt) == (False, "a red fox sleeps in the snow at night")
    assert not cache.get("a red fox runs over the snow at dawn").hit
    assert len(asked) == 3
