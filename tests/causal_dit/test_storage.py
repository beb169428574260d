"""Where keys and values lie changes nothing but memory; how precisely they are kept costs what is stated."""

import pytest
import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import TINY, Window
from gpu_consumers.engines.causal_dit.memory import KvCache, Storage, storage_shape
from gpu_consumers.engines.causal_dit.storage import DeviceStorage, HostStorage, Precision, Rows, Shape
from gpu_consumers.engines.causal_dit.transformer import Transformer

CPU = torch.device("cpu")
GRID = (2, 3)
DIT = TINY
SHAPE = Shape(layers=1, batch=1, rows=64, heads=3, head_dim=16)


def rows_of(precision: Precision) -> Rows:
    return DeviceStorage(SHAPE, precision, torch.float32, CPU).layer(0)


@pytest.mark.parametrize(("precision", "limit"), [(Precision.INT8, 1 / 254), (Precision.FP8, 1 / 28)])
def test_the_error_of_an_element_is_within_what_is_stated(precision: Precision, limit: float) -> None:
    rows = rows_of(precision)
    x = torch.randn(1, 64, 3, 16) * torch.logspace(-4, 4, 64)[None, :, None, None]
    rows.put(slice(0, 64), x, -x)
    k, v = rows.get(64, torch.float32)
    largest = x.abs().amax(dim=-1, keepdim=True)
    assert ((k - x).abs() / largest).max() <= limit * 1.001
    assert torch.equal(k, -v)
    assert rows.k.element_size() == 1


def test_small_elements_keep_their_relative_precision_in_fp8() -> None:
    rows = rows_of(Precision.FP8)
    x = torch.tensor([1.0, 0.1, 0.01, 0.004]).repeat(4)[None, None, None].expand(1, 1, 3, 16)
    rows.put(slice(0, 1), x, x)
    k, _ = rows.get(1, torch.float32)
    assert ((k - x) / x).abs().max() <= 1 / 16


def test_zeros_stay_zeros() -> None:
    for precision in Precision:
        rows = rows_of(precision)
        rows.put(slice(0, 1), torch.zeros(1, 1, 3, 16), torch.zeros(1, 1, 3, 16))
        assert (rows.get(1, torch.float32)[0] == 0).all()


@torch.no_grad()
def run(storage: Storage, blocks: int = 6) -> Tensor:
    torch.manual_seed(6)
    model = Transformer(DIT).eval()
    context = model.context(torch.randn(1, DIT.text_tokens, DIT.text_dim))
    cache = KvCache(storage, Window(), GRID, 12)
    outs: list[Tensor] = []
    for block in range(blocks):
        cache.begin(3 * block)
        outs.append(model(torch.randn(1, 16, 3, 4, 6), torch.zeros(1), context, cache))
    return torch.cat(outs, dim=2)


def shape() -> Shape:
    return storage_shape(DIT, 12, GRID, batch=1)


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("precision", list(Precision))
def test_the_host_gives_the_same_bits_as_the_device(chunk: int, precision: Precision) -> None:
    on_device = DeviceStorage(shape(), precision, torch.float32, CPU)
    on_host = HostStorage(shape(), precision, torch.float32, CPU, chunk)
    assert torch.equal(run(on_host), run(on_device))


@pytest.mark.parametrize(("layers", "chunk"), [(6, 2), (5, 2), (3, 1), (7, 3), (2, 2)])
def test_every_layer_comes_back_as_it_was_written_also_with_an_odd_number_of_chunks(layers: int, chunk: int) -> None:
    storage = HostStorage(
        Shape(layers=layers, batch=1, rows=2, heads=1, head_dim=1), Precision.FULL, torch.float32, CPU, chunk
    )
    one = torch.ones(1, 1, 1, 1)
    for turn in range(2):
        for index in range(layers):
            rows = storage.layer(index)
            rows.put(slice(turn, turn + 1), one * index, one * index)
            storage.written(index, slice(turn, turn + 1))
            assert rows.get(turn + 1, torch.float32)[0].flatten().tolist() == [index] * (turn + 1)


@pytest.mark.parametrize(("precision", "limit"), [(Precision.INT8, 0.01), (Precision.FP8, 0.05)])
def test_low_precision_moves_the_output_little(precision: Precision, limit: float) -> None:
    exact = run(DeviceStorage(shape(), Precision.FULL, torch.float32, CPU))
    kept = run(DeviceStorage(shape(), precision, torch.float32, CPU))
    error = (kept - exact).norm() / exact.norm()
    assert 0 < error < limit


def test_the_device_holds_two_chunks_only() -> None:
    layers = Shape(layers=30, batch=1, rows=8, heads=2, head_dim=8)
    everything = DeviceStorage(layers, Precision.FULL, torch.float32, CPU).device_bytes
    assert HostStorage(layers, Precision.FULL, torch.float32, CPU, 3).device_bytes == everything * 6 // 30
