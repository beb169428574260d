"""`python -m tests.schemas.golden` adds the bytes of new schema versions to golden.json; old ones stay."""

import json

from schemas.codec import encode, to_json
from schemas.ids import versions
from schemas.topics import EVENTS
from tests.schemas.samples import sample
from tests.schemas.test_avro import GOLDEN


def main() -> None:
    """Add what is missing."""
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    newest = {v.record: v.version for v in versions()}
    for record in EVENTS:
        event = sample(record)
        entry = {"bytes": encode(event).hex(), "event": json.loads(to_json(event))}
        golden.setdefault(f"{record.__name__}.{newest[record.__name__]}", entry)
    GOLDEN.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
