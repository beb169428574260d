"""What a generate worker measures of its engine process and its GPU."""

import logging
import time

import pynvml
from prometheus_client import Counter, Gauge

from schemas.records import SegmentFailed, SegmentGenerated
from schemas.topics import Event

FULL = 0.95
"""Share of the GPU's memory above which a worker takes no new work."""
_TRUST_S = 1.0

SEGMENTS = Counter("longtake_segments_total", "Segments answered.", ("engine", "outcome"))
FRAMES = Counter("longtake_frames_generated_total", "Frames generated.", ("engine",))
STAGE_S = Counter("longtake_segment_stage_seconds_total", "Time of segments in a stage.", ("engine", "stage"))
BUSY_S = Gauge("longtake_engine_busy_seconds", "For how long the engine worked while requests waited, so far.")
WAITING_S = Gauge("longtake_engine_waiting_seconds", "For how long requests waited, so far.")
HEARTBEAT_AGE = Gauge("longtake_engine_heartbeat_age_seconds", "Since the engine process said something.")
UTILIZATION = Gauge("longtake_gpu_utilization_ratio", "Share of the last second in which a kernel ran.", ("gpu",))
COPY = Gauge(
    "longtake_gpu_memory_copy_ratio", "Share of the last second in which memory was read or written.", ("gpu",)
)
USED = Gauge("longtake_gpu_memory_used_bytes", "Device memory in use.", ("gpu",))
TOTAL = Gauge("longtake_gpu_memory_bytes", "Device memory.", ("gpu",))
FRAGMENTATION = Gauge(
    "longtake_gpu_pool_fragmentation_ratio",
    "Share of the allocator's pool that lies idle between blocks in use, after the last segment.",
    ("gpu",),
)
TEMPERATURE = Gauge("longtake_gpu_temperature_celsius", "Of the device.", ("gpu",))

log = logging.getLogger(__name__)


def count_segment(event: Event) -> None:
    """An answer of the engine."""
    match event:
        case SegmentGenerated():
            SEGMENTS.labels(event.engine, "generated").inc()
            FRAMES.labels(event.engine).inc(event.frames.shape[0])
            for stage in ("denoise", "decode", "store"):
                STAGE_S.labels(event.engine, stage).inc(getattr(event, f"{stage}_us") / 1e6)
        case SegmentFailed():
            SEGMENTS.labels(event.engine, event.kind.value).inc()
        case _:
            raise TypeError(f"an engine answers with a segment, not a {type(event).__name__}")


def count_busy(busy_us: tuple[int, int]) -> None:
    """`(busy, waiting)` so far."""
    BUSY_S.set(busy_us[0] / 1e6)
    WAITING_S.set(busy_us[1] / 1e6)


def heard() -> None:
    """The engine process said something."""
    since = time.monotonic()
    HEARTBEAT_AGE.set_function(lambda: time.monotonic() - since)


class GpuMeter:
    """The device of the engine process, by NVML. Without one every figure is absent."""

    def __init__(self) -> None:
        self._uuid = ""
        self._read_s = 0.0
        self._share = 0.0

    def watch(self, uuid: str) -> None:
        """From now on this device; empty: none."""
        self._uuid = uuid
        self._share = self._read_s = 0.0

    def pool(self, fragmentation: float) -> None:
        """The engine process has looked at its allocator. Without a device there is none."""
        if self._uuid:
            FRAGMENTATION.labels(self._uuid).set(fragmentation)

    def full(self) -> str:
        """What is wrong if its memory is nearly used up. Reads the device at most once a second."""
        now_s = time.monotonic()
        if self._uuid and now_s - self._read_s >= _TRUST_S:
            self._read_s = now_s
            self._read(self._uuid)
        return f"GPU memory is at {self._share:.0%}" if self._share > FULL else ""

    def _read(self, uuid: str) -> None:
        try:
            pynvml.nvmlInit()
            device = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            memory = pynvml.nvmlDeviceGetMemoryInfo(device)
            rates = pynvml.nvmlDeviceGetUtilizationRates(device)
            celsius = pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)
        except pynvml.NVMLError as error:
            log.warning("GPU %s cannot be read: %s", uuid, error)
            return
        self._share = int(memory.used) / int(memory.total)
        UTILIZATION.labels(uuid).set(int(rates.gpu) / 100)
        COPY.labels(uuid).set(int(rates.memory) / 100)
        USED.labels(uuid).set(int(memory.used))
        TOTAL.labels(uuid).set(int(memory.total))
        TEMPERATURE.labels(uuid).set(celsius)
