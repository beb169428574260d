"""Every metric of the workers, by Prometheus' conventions: base units, `_total` for counters, bounded labels, never a job_id.

Meters live in prometheus_client's registry of the process; `door.py` serves it. What only an onlooker can know (lag, disk)
is in `exporter.py`.
"""

from prometheus_client import Counter, Gauge, Histogram

_HANDLER_S = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_COMMIT_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)

LOOP_AGE = Gauge("longtake_loop_turn_age_seconds", "Since the loop turned last.")
READY = Gauge("longtake_ready", "1: the process would take new work.")
ASSIGNED = Gauge("longtake_assigned_partitions", "Partitions this process reads.")
STUCK = Gauge("longtake_stuck_partitions", "Partitions that have records and give none.")
IN_FLIGHT = Gauge("longtake_records_in_flight", "Records that are being worked at.")
CONSUMED = Counter("longtake_records_consumed_total", "Records whose outcome was committed.", ("topic",))
PRODUCED = Counter("longtake_records_produced_total", "Records that were committed.", ("topic",))
HANDLER_S = Histogram(
    "longtake_handler_seconds", "From a record's start to its answer.", ("topic",), buckets=_HANDLER_S
)
COMMIT_S = Histogram("longtake_transaction_seconds", "From begin to commit.", buckets=_COMMIT_S)
ABORTED = Counter("longtake_transactions_aborted_total", "Transactions that were aborted and done again.")
ALERTS = Counter(
    "longtake_alerts_total", "Tries to call a webhook: delivered, again, refused; old: not tried.", ("hook", "outcome")
)
DEAD_LETTERS = Counter("longtake_dead_letters_total", "Records that were put aside.", ("topic", "rule"))

ASSET_READS = Counter(
    "longtake_asset_reads_total",
    "Assets that work asked for: hit, there already; waited, another was fetching it; miss, fetched now.",
    ("outcome",),
)
ASSET_READ_BYTES = Counter("longtake_asset_read_bytes_total", "Bytes of these assets.", ("outcome",))
ASSET_FETCHED_BYTES = Counter(
    "longtake_asset_fetched_bytes_total",
    "Bytes of assets from the store: need, work waited; ahead, none did.",
    ("why",),
)
ASSETS_DAMAGED = Counter("longtake_assets_damaged_total", "Files of the cache that had other bytes than they should.")
ASSET_CACHE_BYTES = Gauge(
    "longtake_asset_cache_bytes", "On this machine's disk: owned, it is to keep them; guests, others are.", ("kept",)
)
