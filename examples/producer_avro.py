"""Submit a storyboard in Avro. All that is needed from Longtake are its schema files and the list of their ids.

A record is Confluent's wire format: a zero byte, the schema id as four bytes, the Avro body. With a schema registry that
holds the same ids, any Avro serializer does this.
"""

import io
import os
import struct
import uuid
from pathlib import Path

import fastavro
from confluent_kafka import Producer

SCHEMAS = Path(__file__).parents[1] / "schemas"


def newest_id(record: str) -> tuple[int, int]:
    """Id and version of a record's newest schema: `ids.lock` has a line `id record version fingerprint` for each."""
    lines = [line.split() for line in (SCHEMAS / "ids.lock").read_text().splitlines() if not line.startswith("#")]
    number, _, version, _ = max((line for line in lines if line[1] == record), key=lambda line: int(line[2]))
    return int(number), int(version)


def shot(prompt: str, **fields: object) -> dict[str, object]:
    """A shot; what is left out has the schema's default."""
    return {"prompt": prompt, **fields}


schema_id, version = newest_id("PromptSubmitted")
schema = fastavro.schema.load_schema(SCHEMAS / "avro" / "PromptSubmitted" / f"{version}.avsc")
job = {
    "job_id": f"film-{uuid.uuid4().hex[:8]}",
    "text": "A balloon and a train",
    "shots": [
        shot("A hot air balloon rises over misty mountains at dawn", seconds=4.0, camera="crane up"),
        shot("A steam train crosses a bridge in the rain", seconds=4.0, camera="tracking shot", transition="dissolve"),
    ],
    "negative": ["people"],
}
body = io.BytesIO(struct.pack(">bI", 0, schema_id))
body.seek(0, io.SEEK_END)
fastavro.schemaless_writer(body, schema, job)

producer = Producer({"bootstrap.servers": os.environ["LONGTAKE_KAFKA"], "partitioner": "murmur2_random"})
producer.produce("longtake.prompts.v1", key=job["job_id"], value=body.getvalue())
producer.flush()
print(job["job_id"])
