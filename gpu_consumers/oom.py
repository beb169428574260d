"""Whether the kernel's out-of-memory killer was here: the one thing that tells its SIGKILL from anybody else's."""

from pathlib import Path


def oom_kills(root: Path = Path("/")) -> int:
    """How many processes it has killed so far in this control group, or on this machine if there is no such count (cgroup v2, proc(5))."""
    for counts in (_cgroup_events(root), root / "proc" / "vmstat"):
        try:
            lines = counts.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def _cgroup_events(root: Path) -> Path:
    try:
        groups = (root / "proc" / "self" / "cgroup").read_text().splitlines()
    except OSError:
        groups = []
    mine = next((line.removeprefix("0::/") for line in groups if line.startswith("0::/")), "")
    return root / "sys" / "fs" / "cgroup" / mine / "memory.events"
