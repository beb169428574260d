"""How much of everything so many GPUs need: arithmetic on what a minute of video was measured to cost."""

from dataclasses import dataclass
from math import ceil

from benchmarks.scaling.figures import Minute
from schemas.topics import TOPICS
from streams.decider import INPUTS

FPS = 24
SEGMENT_FRAMES = 48
"""Of `causal_dit`: new frames of a segment."""
TARGET_FPS = 25.0
"""Of one GPU, denoising and decoding. A target: no GPU was measured."""
VIDEO_S = 120
HEADLINE = 8
"""Two-minute videos a day per server."""
PARTITIONS_PER_GPU = 4
HELD_STATES = 8
"""That a worker with four slots keeps: more jobs at once on a GPU would have to be restored between their segments."""
TRANSACTIONS = 9
"""Of a segment, at most: generate, stitch and check commit a note and an answer each, the director what follows from three answers."""
FULL = 0.5
"""Share of what a broker or shard was measured to take that it is given."""
REPLICAS = 3
BROKER_REPLICAS = 4000
"""Of partitions on one broker: Confluent's advice, "Apache Kafka Supports 200K Partitions Per Cluster", 2018. Not measured."""
DIRECTOR_EVENTS_PER_S = 1000.0
"""What the benchmark `director` has to reach on two cores."""
_ENGINE = "generate"
_SHARED = ("kafka", "clickhouse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """For so many GPUs at a speed, all busy."""

    gpus: int
    partitions: int
    jobs: int
    """In the line, running or waiting, for 95 % busy."""
    minutes_per_s: float
    """Minutes of video per second."""
    records_per_s: float
    bus_bytes_per_s: float
    """As produced, without replicas."""
    transactions_per_s: float
    brokers: int
    partition_replicas: int
    """Of all topics, as every one has as many partitions."""
    directors: int
    rows_per_s: float
    shards: int
    """With an insert for each piece, as the line does it."""
    shards_in_batches: int
    cores: float
    """Of everything but engines, brokers and ClickHouse."""
    put_bytes_per_s: float
    got_bytes_per_s: float
    kept_bytes_per_day: float
    """Latents for a day and videos: what stays after the jobs."""


def minutes_per_s(gpus: int, fps: float) -> float:
    """Of video, made by so many busy GPUs."""
    return gpus * fps / FPS / 60


def videos_per_day(fps: float) -> float:
    """Two-minute videos of one busy GPU."""
    return 86_400 * fps / (VIDEO_S * FPS)


def fps_for(videos: float, gpus: int) -> float:
    """Frames/s that each of so many GPUs has to make for so many two-minute videos a day."""
    return videos * VIDEO_S * FPS / 86_400 / gpus


def jobs_for(gpus: int, busy: float) -> int:
    """N / (N + M - 1) of the time each of M GPUs is busy (Gordon and Newell, 1967), solved for N."""
    return ceil(busy * (gpus - 1) / (1 - busy)) if gpus > 1 else 1


def worker_cpu_s(minute: Minute) -> float:
    """Of a minute of video, of the roles that grow with the GPUs."""
    return sum(value for role, value in minute.costs.cpu_s.items() if role not in (_ENGINE, *_SHARED))


def got_bytes(minute: Minute) -> float:
    """What is read for a minute of video, by who reads what: frames by the stitcher, pieces by their check and the assembler, references
    by the check, the video by its own. Latents only where a state has to be restored."""
    written = minute.costs.object_bytes
    return written["frames"] + 2 * written["pieces"] + written["references"] + written["videos"]


def sizes(gpus: int, minute: Minute, fps: float = TARGET_FPS) -> Sizes:
    """What keeps them busy, and what takes in what they make."""
    rate, costs, capacity = minutes_per_s(gpus, fps), minute.costs, minute.capacity
    records, rows = rate * sum(costs.records.values()), rate * sum(costs.rows.values())
    transactions = TRANSACTIONS * gpus * fps / SEGMENT_FRAMES
    decided = rate * sum(costs.records.get(topic.removeprefix("longtake."), 0.0) for topic in INPUTS)
    replicas = gpus * PARTITIONS_PER_GPU * len(TOPICS) * REPLICAS
    load = max(records / capacity["broker_records_per_s"], transactions / capacity["broker_transactions_per_s"])
    return Sizes(
        gpus=gpus,
        partitions=gpus * PARTITIONS_PER_GPU,
        jobs=jobs_for(gpus, 0.95),
        minutes_per_s=rate,
        records_per_s=records,
        bus_bytes_per_s=rate * sum(costs.topic_bytes.values()),
        transactions_per_s=transactions,
        brokers=max(REPLICAS, ceil(REPLICAS * load / FULL), ceil(replicas / BROKER_REPLICAS)),
        partition_replicas=replicas,
        directors=max(2, ceil(decided / DIRECTOR_EVENTS_PER_S / FULL)),
        rows_per_s=rows,
        shards=ceil(rows / capacity["clickhouse_rows_by_piece_per_s"] / FULL),
        shards_in_batches=ceil(rows / capacity["clickhouse_rows_by_fifty_per_s"] / FULL),
        cores=rate * worker_cpu_s(minute) / FULL,
        put_bytes_per_s=rate * sum(costs.object_bytes.values()),
        got_bytes_per_s=rate * got_bytes(minute),
        kept_bytes_per_day=86_400 * rate * (costs.object_bytes["latents"] + costs.object_bytes["videos"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Of others: inputs, not figures of ours."""

    gpu_hour: float
    core_hour: float
    gb_month: float = 0.0


def cost_per_minute(minute: Minute, prices: Prices, *, fps: float, busy: float) -> float:
    """Of video, in the prices' currency: the GPU's time over its speed, the cores' time, and what is kept for a month."""
    gpu_hours = 60 * FPS / fps / busy / 3600
    core_hours = sum(value for role, value in minute.costs.cpu_s.items() if role != _ENGINE) / FULL / 3600
    return (
        gpu_hours * prices.gpu_hour
        + core_hours * prices.core_hour
        + minute.costs.object_bytes["videos"] / 1e9 * prices.gb_month
    )
