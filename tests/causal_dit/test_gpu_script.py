"""`benchmarks/gpu.sh` in its tiny configuration: one JSON object, a figure of every part, and a part that fails stops no other.

Start-up (three more processes) and compiling are left out: they import torch again, and have tests of their own.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks import gpu

SCRIPT = Path(gpu.__file__).with_name("gpu.sh")
PARTS = ("card", "parity", "first_frame", "denoise", "end_to_end", "length", "storage", "ledger")


@pytest.mark.timeout(420)  # importing torch takes minutes where others want the machine too
def test_the_script_prints_one_object_with_the_figures_of_every_part() -> None:
    done = subprocess.run([str(SCRIPT), "--tiny", *PARTS], capture_output=True, check=False, timeout=400)
    found = json.loads(done.stdout)
    assert (found["errors"], done.returncode) == ({}, 0), done.stderr.decode()
    assert (found["config"], found["device"]) == ("tiny", "cpu")
    assert found["parity_fp32_error"] < 1e-5
    assert found["parity_bf16_error"] < 0.05
    assert found["length_memory_ratio"] == pytest.approx(1, abs=0.01)
    assert found["ledger_ratio"] == pytest.approx(1, abs=0.05)
    assert found["kv_offload_error"] == 0
    assert 0 < found["kv_int8_error"] < found["kv_fp8_error"] < 0.05
    for figure in ("first_frame_s", "denoise_fps", "end_to_end_fps", "decode_fps"):
        assert found[figure] > 0


def fine(tiny: bool) -> gpu.Figures:
    return {"tiny": int(tiny)}


def raises(tiny: bool) -> gpu.Figures:
    raise ValueError("no such card")


def sleeps(tiny: bool) -> gpu.Figures:
    time.sleep(60)
    return {}


def dies(tiny: bool) -> gpu.Figures:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def test_a_part_that_goes_wrong_says_so_and_is_gone() -> None:
    assert gpu.guarded(fine, 30, tiny=True) == {"tiny": 1}
    for part, limit_s, said in (
        (raises, 30, "ValueError: no such card"),
        (sleeps, 0.2, "not done in 0 s"),
        (dies, 30, "the process ended with -9"),
        (fine, -1, "no time left"),
    ):
        with pytest.raises(gpu.PartError, match=said):
            gpu.guarded(part, limit_s, tiny=True)
