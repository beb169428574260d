"""Where keys and values lie: on the device or in pinned host memory, in the engine's precision, fp8 or int8.

fp8 (e4m3) and int8 keep one scale per token and head, its largest magnitude. Error of one element, relative to that scale:
int8 at most 1/254; fp8 at most 1/28 (half a step of 32 below its 448), and at most 1/16 of the element itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import Kept, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Keys and values of one layer, [B, rows, heads, d], as they are kept."""

    k: Tensor
    v: Tensor
    k_scale: Tensor | None
    v_scale: Tensor | None

    def put(self, rows: slice, k: Tensor, v: Tensor) -> None:
        """Write k and v [B, len(rows), heads, d]."""
        _pack(k, self.k[:, rows], None if self.k_scale is None else self.k_scale[:, rows])
        _pack(v, self.v[:, rows], None if self.v_scale is None else self.v_scale[:, rows])

    def get(self, count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The first `count` rows of both; not copied where they are kept in `dtype`."""
        return (
            _unpack(self.k[:, :count], self.k_scale, dtype),
            _unpack(self.v[:, :count], self.v_scale, dtype),
        )

    def tensors(self) -> list[Tensor]:
        """All parts that exist."""
        return [t for t in (self.k, self.v, self.k_scale, self.v_scale) if t is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Size of the storage: rows are tokens."""

    layers: int
    batch: int
    rows: int
    heads: int
    head_dim: int


class DeviceStorage:
    """All layers on the device."""

    def __init__(self, shape: Shape, precision: Precision, dtype: torch.dtype, device: torch.device) -> None:
        self._layers = [_allocate(shape, precision, dtype, device) for _ in range(shape.layers)]

    @property
    def device_bytes(self) -> int:
        """What it occupies on the device, whatever was written."""
        return sum(_bytes(layer) for layer in self._layers)

    def layer(self, index: int) -> Rows:
        """The layer, to be read and written."""
        return self._layers[index]

    def written(self, index: int, rows: slice) -> None:
        """Rows of a layer were changed."""


class HostStorage:
    """All layers in host memory; two chunks of `chunk_layers` on the device, the next one fetched while this one is used.

    Layers are asked for in order, again and again. On CUDA the host side is pinned and copies run on a stream of their own.
    """

    def __init__(
        self, shape: Shape, precision: Precision, dtype: torch.dtype, device: torch.device, chunk_layers: int
    ) -> None:
        self._cuda = device.type == "cuda"
        self._chunk = chunk_layers
        self._host = [_allocate(shape, precision, dtype, torch.device("cpu")) for _ in range(shape.layers)]
        if self._cuda:
            self._host = [_mapped(layer, Tensor.pin_memory) for layer in self._host]
        self._slots = [[_allocate(shape, precision, dtype, device) for _ in range(chunk_layers)] for _ in range(2)]
        self._holds = [-1, -1]
        self._in_use = 1
        self._stream = torch.cuda.Stream(device) if self._cuda else None
        self._ready = [torch.cuda.Event() for _ in range(2)] if self._cuda else []

    @property
    def device_bytes(self) -> int:
        """What it occupies on the device."""
        return sum(_bytes(layer) for slot in self._slots for layer in slot)

    def layer(self, index: int) -> Rows:
        """The layer, brought to the device; starts to bring the chunk after it."""
        chunk = index // self._chunk
        slot = self._fetch(chunk)
        self._in_use = slot
        if self._stream is not None:
            torch.cuda.current_stream().wait_event(self._ready[slot])
        if index % self._chunk == 0:
            self._fetch((chunk + 1) % -(-len(self._host) // self._chunk))
        return self._slots[slot][index % self._chunk]

    def written(self, index: int, rows: slice) -> None:
        """Bring changed rows of a layer back to the host. The layer is one of the chunk in use."""
        held = self._slots[self._in_use][index % self._chunk]
        self._copy(held, self._host[index], rows)

    def _fetch(self, chunk: int) -> int:
        # Never into the slot in use: with an odd number of chunks the last one and the first share a parity.
        if chunk in self._holds:
            return self._holds.index(chunk)
        slot = 1 - self._in_use
        first = chunk * self._chunk
        for offset, layer in enumerate(self._host[first : first + self._chunk]):
            self._copy(layer, self._slots[slot][offset], slice(None))
        self._holds[slot] = chunk
        if self._stream is not None:
            self._ready[slot].record(self._stream)
        return slot

    def _copy(self, source: Rows, target: Rows, rows: slice) -> None:
        if self._stream is None:
            for a, b in zip(source.tensors(), target.tensors(), strict=True):
                b[:, rows].copy_(a[:, rows])
            return
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for a, b in zip(source.tensors(), target.tensors(), strict=True):
                b[:, rows].copy_(a[:, rows], non_blocking=True)


def storage_for(shape: Shape, kept: Kept, dtype: torch.dtype, device: torch.device) -> DeviceStorage | HostStorage:
    """As a job wants it. A chunk of more layers than there are is all of them."""
    if not kept.offload:
        return DeviceStorage(shape, kept.precision, dtype, device)
    return HostStorage(shape, kept.precision, dtype, device, min(kept.offload, shape.layers))


def _allocate(shape: Shape, precision: Precision, dtype: torch.dtype, device: torch.device) -> Rows:
    kept = {Precision.FULL: dtype, Precision.FP8: torch.float8_e4m3fn, Precision.INT8: torch.int8}[precision]
    size = (shape.batch, shape.rows, shape.heads)

    def scale() -> Tensor | None:
        return None if precision is Precision.FULL else torch.zeros(*size, 1, dtype=torch.float32, device=device)

    k, v = (torch.zeros(*size, shape.head_dim, dtype=kept, device=device) for _ in range(2))
    return Rows(k=k, v=v, k_scale=scale(), v_scale=scale())


def _mapped(rows: Rows, change: Callable[[Tensor], Tensor]) -> Rows:
    k_scale, v_scale = (None if s is None else change(s) for s in (rows.k_scale, rows.v_scale))
    return Rows(k=change(rows.k), v=change(rows.v), k_scale=k_scale, v_scale=v_scale)


def _pack(x: Tensor, into: Tensor, scale: Tensor | None) -> None:
    if scale is None:
        into.copy_(x)
        return
    largest = x.abs().amax(dim=-1, keepdim=True).float().clamp_min(1e-12)
    scale.copy_(largest)
    unit = x.float() / largest
    into.copy_((unit * 127).round() if into.dtype == torch.int8 else unit * torch.finfo(into.dtype).max)


def _unpack(kept: Tensor, scale: Tensor | None, dtype: torch.dtype) -> Tensor:
    if scale is None:
        return kept
    full = 127 if kept.dtype == torch.int8 else torch.finfo(kept.dtype).max
    return (kept.float() * (scale[:, : kept.shape[1]] / full)).to(dtype)


def _bytes(rows: Rows) -> int:
    return sum(t.numel() * t.element_size() for t in rows.tensors())
