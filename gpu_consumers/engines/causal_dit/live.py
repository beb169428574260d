"""Counts the bytes of tensors that are alive, and their peak: on real tensors a measurement, on fake ones a prediction."""

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Inside it, every storage that an operation makes is counted until nothing refers to it. What was there before is not."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, StorageWeakRef] = {}
        # A weak reference keeps a storage's address from being given to another one, so none is taken for one that is gone.
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}
        self._bytes = 0
        self.peak = 0

    @property
    def now(self) -> int:
        """Bytes that something refers to."""
        self._forget()
        return self._bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for storage in _storages((args, kwargs)):
            reference = StorageWeakRef(storage)
            if reference.cdata not in self._live:
                self._known[reference.cdata] = reference
        out = func(*args, **(kwargs or {}))
        self._forget()
        for storage in _storages(out):
            reference = StorageWeakRef(storage)
            if reference.cdata not in self._live and reference.cdata not in self._known:
                self._live[reference.cdata] = (reference, storage.nbytes())
                self._bytes += storage.nbytes()
        self.peak = max(self.peak, self._bytes)
        return out

    def _forget(self) -> None:
        for key in [key for key, (reference, _) in self._live.items() if reference.expired()]:
            self._bytes -= self._live.pop(key)[1]


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    return [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
