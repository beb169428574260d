"""What this machine's broker and ClickHouse take in: lower bounds of a server's, beside everything else that runs here."""

import threading
import time
import uuid

import pyarrow as pa

from infra.bus import clients
from infra.bus.clients import Member
from infra.clickhouse import connect
from infra.settings import Settings
from schemas.records import PlayReported

_RECORDS = 200_000
_BYTES = 1000
_PRODUCERS = 8
_TRANSACTIONS_S = 5.0
_INSERTS = 40
_BATCH = 50
"""Pieces in one insert: what a buffer before ClickHouse would make of them."""


def measure(settings: Settings, job_id: str) -> dict[str, float]:
    """Records/s of 1,000 bytes by one idempotent producer; transactions/s of one record by eight; rows/s of `frame_log`, by piece and by fifty."""
    return {
        "broker_records_per_s": _records_per_s(settings),
        "broker_transactions_per_s": _transactions_per_s(settings),
        **_rows_per_s(settings, job_id),
    }


def _records_per_s(settings: Settings) -> float:
    producer = clients.plain_producer(settings, "longtake.benchmark")
    value, begun_s = bytes(_BYTES), time.perf_counter()
    for number in range(_RECORDS):
        while True:
            try:
                producer.produce(PlayReported.topic, value, str(number).encode())
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(60):
        raise TimeoutError("the broker did not take the records")
    return _RECORDS / (time.perf_counter() - begun_s)


def _transactions_per_s(settings: Settings) -> float:
    counts = [0] * _PRODUCERS
    members = [Member(role=f"benchmark-{number}", topics=()) for number in range(_PRODUCERS)]
    producers = [clients.transactional_producer(settings, member) for member in members]
    for producer in producers:
        producer.init_transactions()
    end_s = time.monotonic() + _TRANSACTIONS_S

    def commit(number: int) -> None:
        producer = producers[number]
        while time.monotonic() < end_s:
            producer.begin_transaction()
            producer.produce(PlayReported.topic, bytes(_BYTES), str(number).encode())
            producer.flush()
            producer.commit_transaction()
            counts[number] += 1

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(_PRODUCERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / _TRANSACTIONS_S


def _rows_per_s(settings: Settings, job_id: str) -> dict[str, float]:
    client = connect(settings)
    query = "SELECT * FROM frame_log WHERE job_id = {job:String} AND piece = 1"
    piece = client.query_arrow(query, {"job": job_id})
    found: dict[str, float] = {}
    for name, pieces in (("clickhouse_rows_by_piece_per_s", 1), ("clickhouse_rows_by_fifty_per_s", _BATCH)):
        table = pa.concat_tables([piece] * pieces)
        begun_s = time.perf_counter()
        for _ in range(_INSERTS):
            token = {"insert_deduplication_token": uuid.uuid4().hex, "async_insert": 0}
            client.insert_arrow("frame_log", table, settings=token)
        found[name] = _INSERTS * table.num_rows / (time.perf_counter() - begun_s)
    return found
