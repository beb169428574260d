"""The real supervisor with commands of a test in place of the workers: `python -m tests.local.stand_in JSON`."""

import json
import sys

from infra.local.supervisor import run
from infra.settings import Settings

if __name__ == "__main__":
    run(Settings(), json.loads(sys.argv[1]))
