"""Submit a prompt with nothing but confluent-kafka: JSON on the topic is as good as Avro. LONGTAKE_KAFKA says where."""

import json
import os
import uuid

from confluent_kafka import Producer

job = {"job_id": f"film-{uuid.uuid4().hex[:8]}", "text": "A whale swims underwater, slowly", "duration_s": 8}
producer = Producer({"bootstrap.servers": os.environ["LONGTAKE_KAFKA"], "partitioner": "murmur2_random"})
producer.produce("longtake.prompts.v1", key=job["job_id"], value=json.dumps(job))
producer.flush()
print(job["job_id"])
