"""Errors as drivers, torch, NCCL and the system word them, by kind; and what the next attempt changes."""

import pytest

from gpu_consumers.child import _kind
from gpu_consumers.engines.engine import EngineError
from gpu_consumers.faults import SIGNS, Change, classify, retry
from schemas.records import FailureKind
from tests.gpu_consumers.requests import segment_request

WORDED = {
    FailureKind.DEVICE_LOST: [
        "NVRM: Xid (PCI:0000:07:00): 79, pid=4242, name=python, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:4e:00): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "VK_ERROR_DEVICE_LOST",
        "DXGI_ERROR_DEVICE_REMOVED",
        "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "device lost",
    ],
    FailureKind.OUT_OF_MEMORY: [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.21 GiB. GPU 0 has a total capacity of 23.65 GiB",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "Out of memory: Killed process 4242 (python) total-vm:68221432kB, anon-rss:31011240kB",
        "MemoryError: Unable to allocate 40.0 GiB for an array",
        "the kernel killed the engine process for memory while in decode",
    ],
    FailureKind.KERNEL: [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "NVRM: Xid (PCI:0000:07:00): 31, pid=4242, name=python, MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted",
        "torch.AcceleratorError: CUDA error: device-side assert triggered",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "shader compilation failed",
    ],
    FailureKind.SYNC: [
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error",
        "[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLGATHER) ran for 600029 ms",
        "fence wait timed out after 5000 ms",
        "GPU sync timeout",
    ],
    FailureKind.IO: [
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 5] Input/output error",
        "GenericError: Error performing PUT: connection reset by peer",
        "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
    ],
    FailureKind.NAN: ["12 of 184320 latent values are not finite", "NaN in latents of block 7"],
    FailureKind.SINK_COLLAPSE: ["latent 1 of 3 snapped back to the first ones", "sink_collapse"],
    FailureKind.WRONG_FRAME_COUNT: ["45 frames instead of 48", "wrong count"],
    FailureKind.FROZEN: ["all 48 frames are the same, but motion was asked for", "frozen", "frozen picture"],
    FailureKind.BLACK: ["all 48 frames are black"],
    FailureKind.STATE_MISSING: ["latents of an earlier segment: not found", "12 latents do not lead to frame 33"],
    FailureKind.TIMEOUT: ["no step for 31.5 s while in denoise", "render timed out", "step stalled"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in WORDED.items() for text in texts])
def test_errors_are_known_by_their_words(kind: FailureKind, text: str) -> None:
    assert classify(text) is kind


@pytest.mark.parametrize(
    "text",
    [
        "NCCL version 2.27.3+cuda12.9",
        "loaded weights in 412 ms; text encoder frozen",
        "generated 48 frames in 1.9 s",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.126.20",
        "nanobind is installed, ionic is not",
        "",
    ],
)
def test_what_is_said_every_day_is_no_fault(text: str) -> None:
    assert classify(text) is None


def test_every_kind_that_a_parent_must_tell_apart_has_signs() -> None:
    assert {sign.kind for sign in SIGNS} == set(WORDED)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered"), FailureKind.KERNEL),
        (MemoryError(), FailureKind.OUT_OF_MEMORY),
        (OSError(28, "No space left on device"), FailureKind.IO),
        (EngineError(FailureKind.NAN, "not finite"), FailureKind.NAN),
        (AttributeError("frozen picture"), FailureKind.CRASHED),  # of the picture only the engine speaks
        (ZeroDivisionError("division by zero"), FailureKind.CRASHED),
    ],
)
def test_the_engine_process_names_its_end_by_the_same_signs(error: Exception, kind: FailureKind) -> None:
    assert _kind(error) is kind


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (FailureKind.DEVICE_LOST, {Change.RESTART, Change.OTHER_DEVICE}, {Change.RESTART, Change.OTHER_DEVICE}),
        (
            FailureKind.OUT_OF_MEMORY,
            {Change.RESTART, Change.OFFLOAD},
            {Change.RESTART, Change.OFFLOAD, Change.SMALLER_CACHE},
        ),
        (FailureKind.TIMEOUT, {Change.RESTART}, {Change.RESTART, Change.OTHER_DEVICE}),
        (FailureKind.KERNEL, {Change.RESTART}, {Change.RESTART, Change.OTHER_DEVICE}),
        (FailureKind.SYNC, {Change.RESTART}, {Change.RESTART, Change.OTHER_DEVICE}),
        (FailureKind.IO, set(), {Change.RESTART}),
        (FailureKind.NAN, {Change.OTHER_SEED}, {Change.OTHER_SEED, Change.RESTART, Change.OTHER_DEVICE}),
        (FailureKind.FROZEN, {Change.OTHER_SEED}, {Change.OTHER_SEED}),
        (FailureKind.SINK_COLLAPSE, {Change.OTHER_SEED}, {Change.OTHER_SEED}),
        (FailureKind.WRONG_FRAME_COUNT, {Change.RESTART}, {Change.RESTART}),
        (FailureKind.STATE_MISSING, set(), set()),
    ],
)
def test_each_kind_asks_for_its_change(kind: FailureKind, first: set[Change], second: set[Change]) -> None:
    request = segment_request()
    assert retry(request, kind, 1).changes == first
    assert retry(request, kind, 2).changes == retry(request, kind, 5).changes == second


@pytest.mark.parametrize("kind", FailureKind)
def test_whatever_changes_changes_at_the_segments_border(kind: FailureKind) -> None:
    request = segment_request()
    for failures in (1, 2, 3):
        assert retry(request, kind, failures).from_frame == request.start_frame


def test_the_same_picture_is_asked_for_again_unless_it_was_the_picture_that_failed() -> None:
    changes_bits = {Change.OTHER_SEED, Change.SMALLER_CACHE}
    of_picture = {FailureKind.NAN, FailureKind.BLACK, FailureKind.FROZEN, FailureKind.SINK_COLLAPSE}
    for kind in FailureKind:
        assert bool(retry(segment_request(), kind, 1).changes & changes_bits) == (kind in of_picture)
