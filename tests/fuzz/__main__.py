"""`python -m tests.fuzz TARGET SECONDS [FOLDER]`: one target under atheris, guided by coverage, from good inputs on.

Ends with 0 if nothing was found; else the input that found it is in FOLDER (out/fuzz/TARGET) as `crash-...` or `timeout-...`.
"""

import logging
import sys
from pathlib import Path

import atheris

atheris.enabled_hooks.add("str")
with atheris.instrument_imports(
    include=["schemas", "streams", "infra", "qc_consumers", "gpu_consumers", "yaml", "ffmpeg"]
):
    from tests.fuzz.targets import TARGETS, seeds

_INPUT_S = 10
_INPUT_BYTES = 16_384


def main() -> None:
    """Does not return: libFuzzer ends the process."""
    name, seconds = sys.argv[1], sys.argv[2]
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else f"out/fuzz/{name}")
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, seed in enumerate(seeds(name)):
        (corpus / f"seed-{index}").write_bytes(seed)
    logging.disable()
    limits = [f"-max_total_time={seconds}", f"-timeout={_INPUT_S}", f"-max_len={_INPUT_BYTES}", "-rss_limit_mb=2048"]
    atheris.Setup(["fuzz", *limits, f"-artifact_prefix={folder}/", "-print_final_stats=1", str(corpus)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
