"""Subscribe to finished videos: one line for each, for as long as it runs, or until COUNT have come.

python examples/subscriber.py [COUNT]

`read_committed` is what makes it exactly one event per job: without it, records of aborted transactions are seen too.
"""

import io
import os
import struct
import sys
from functools import cache
from pathlib import Path

import fastavro
from confluent_kafka import Consumer

SCHEMAS = Path(__file__).parents[1] / "schemas"


@cache
def schema_of(schema_id: int) -> fastavro.types.Schema:
    """The schema a record was written with."""
    lines = [line.split() for line in (SCHEMAS / "ids.lock").read_text().splitlines() if not line.startswith("#")]
    record, version = next((line[1], line[2]) for line in lines if int(line[0]) == schema_id)
    return fastavro.schema.load_schema(SCHEMAS / "avro" / record / f"{version}.avsc")


def decoded(value: bytes) -> dict:
    """The fields of a record in Confluent's wire format."""
    _, schema_id = struct.unpack(">bI", value[:5])
    return fastavro.schemaless_reader(io.BytesIO(value[5:]), schema_of(schema_id), None)


left = int(sys.argv[1]) if len(sys.argv) > 1 else -1
consumer = Consumer(
    {
        "bootstrap.servers": os.environ["LONGTAKE_KAFKA"],
        "group.id": "example-subscriber",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
)
consumer.subscribe(["longtake.videos.finished.v1"])
try:
    while left:
        record = consumer.poll(1.0)
        if record is None or record.error():
            continue
        video = decoded(record.value())
        print(
            video["job_id"],
            video["verdict"],
            f"{video['duration_us'] / 1e6:.3f} s",
            f"VMAF {video['scores']['vmaf_mean']:.1f}",
            video["video"]["uri"],
            video["video"]["digest"],
            flush=True,
        )
        left -= 1
finally:
    consumer.close()
