"""Who fails when an engine process ends, and who is only given to the next process."""

import signal
from pathlib import Path

import pytest

from gpu_consumers.blame import Ending, Stall, Suspect, blame
from gpu_consumers.oom import oom_kills
from gpu_consumers.pipe import LastWords, Stage
from schemas.records import FailureKind

SEGFAULT = Ending(exit_code=-signal.SIGSEGV)


def suspect(number: int, stage: Stage, crashes: int = 0) -> Suspect:
    return Suspect(number=number, stage=stage, crashes=crashes)


def test_the_request_whose_step_was_running_is_to_blame() -> None:
    suspects = [suspect(1, Stage.STORE), suspect(2, Stage.DENOISE), suspect(3, Stage.QUEUED), suspect(4, Stage.FETCH)]
    blamed = blame(suspects, SEGFAULT)
    assert blamed
    assert (blamed.number, blamed.kind) == (2, FailureKind.CRASHED)
    assert "SIGSEGV" in blamed.reason
    assert "denoise" in blamed.reason


def test_nobody_is_to_blame_when_the_engine_had_nothing_to_do() -> None:
    assert blame([suspect(1, Stage.QUEUED), suspect(2, Stage.SAVE)], SEGFAULT) is None
    assert blame([], Ending(exit_code=1)) is None


def test_of_two_running_requests_the_one_that_was_there_before_is_to_blame() -> None:
    first = blame([suspect(1, Stage.DENOISE), suspect(2, Stage.DECODE)], SEGFAULT)
    again = blame([suspect(3, Stage.DENOISE), suspect(2, Stage.DECODE, crashes=1)], SEGFAULT)
    assert first
    assert again
    assert (first.number, again.number) == (1, 2)


def test_last_words_name_the_request_and_the_kind() -> None:
    words = LastWords(number=2, stage=Stage.DECODE, kind=FailureKind.OUT_OF_MEMORY, reason="MemoryError: 40 GB")
    blamed = blame([suspect(1, Stage.DENOISE), suspect(2, Stage.DECODE)], Ending(exit_code=1, last_words=words))
    assert blamed
    assert (blamed.number, blamed.kind) == (2, FailureKind.OUT_OF_MEMORY)
    assert "40 GB" in blamed.reason


def test_an_error_of_the_object_store_uses_up_no_attempt() -> None:
    words = LastWords(number=1, stage=Stage.STORE, kind=FailureKind.CRASHED, reason="GenericError: 503")
    assert blame([suspect(1, Stage.STORE), suspect(2, Stage.DENOISE)], Ending(exit_code=1, last_words=words)) is None


def test_a_stalled_step_is_a_timeout_of_its_request_only() -> None:
    ending = Ending(exit_code=-signal.SIGKILL, stall=Stall(number=2, silent_s=31.5))
    blamed = blame([suspect(1, Stage.DENOISE), suspect(2, Stage.DECODE)], ending)
    assert blamed
    assert (blamed.number, blamed.kind) == (2, FailureKind.TIMEOUT)
    assert "31.5 s" in blamed.reason


@pytest.mark.parametrize("number", [None, 1])
def test_a_stall_outside_the_engine_is_nobodys_fault(number: int | None) -> None:
    ending = Ending(exit_code=-signal.SIGKILL, stall=Stall(number=number, silent_s=600.0))
    assert blame([suspect(1, Stage.STORE)], ending) is None


@pytest.mark.parametrize(
    ("exit_code", "oom_killed", "kind"),
    [
        (-signal.SIGKILL, True, FailureKind.OUT_OF_MEMORY),
        (-signal.SIGKILL, False, FailureKind.CRASHED),
        (-signal.SIGSEGV, True, FailureKind.CRASHED),
        (1, True, FailureKind.CRASHED),
    ],
)
def test_only_a_sigkill_with_evidence_is_out_of_memory(exit_code: int, oom_killed: bool, kind: FailureKind) -> None:
    blamed = blame([suspect(1, Stage.DENOISE)], Ending(exit_code=exit_code, oom_killed=oom_killed))
    assert blamed
    assert blamed.kind is kind


def test_the_oom_killers_count_comes_from_the_own_control_group_first(tmp_path: Path) -> None:
    assert oom_kills(tmp_path) == 0
    write(tmp_path / "proc" / "vmstat", "nr_free_pages 7\noom_kill 5\n")
    assert oom_kills(tmp_path) == 5
    write(tmp_path / "proc" / "self" / "cgroup", "0::/line.slice/worker\n")
    write(tmp_path / "sys/fs/cgroup/line.slice/worker/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert oom_kills(tmp_path) == 2


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
