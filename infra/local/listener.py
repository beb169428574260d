"""`python listener.py LIBCHDB FOLDER HTTP_PORT TCP_PORT`: ClickHouse's engine, listening on loopback until it is killed.

`query_stable_v2` of libchdb is `clickhouse local`; a query that never ends keeps it up, and `SYSTEM START LISTEN` inside
it starts ClickHouse's own HTTP and native handlers. It is the engine, not the official server build: no TLS, no Keeper.
Standard library only.

In this form the engine's function `file()` reads whatever its process may read, for any user. So the kernel (Landlock) lets
the process read its tables, its configuration and what the kernel says about the machine: no password, and nothing else.
"""

import ctypes
import os
import sys
from pathlib import Path

_QUERY = (
    "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; SELECT sleepEachRow(1) FROM system.numbers SETTINGS "
    "max_block_size=1, function_sleep_max_microseconds_per_block=4000000000, max_execution_time=0 FORMAT Null"
)


class _Result(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("_vec", ctypes.c_void_p),
        ("elapsed", ctypes.c_double),
        ("rows", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("err", ctypes.c_char_p),
    ]


# Linux: asm-generic/unistd.h, linux/landlock.h, linux/prctl.h.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _READ_FILE, _REFER, _PATH_BENEATH, _NO_NEW_PRIVS = 1, 1 << 2, 1 << 13, 1, 38
_MACHINE = ("/proc", "/sys", "/dev/null", "/dev/urandom", "/etc/localtime")
"""What the engine wants to know: memory, cores, cgroups."""


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def read_only(*paths: str) -> bool:
    """From now on this process reads no file outside `paths`. False: the kernel cannot do that (before 5.19, or switched off)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_CREATE_RULESET, None, 0, _VERSION) < 2:  # without `refer` no file could change its folder
        return False
    rights = ctypes.c_uint64(_READ_FILE | _REFER)
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(rights), ctypes.sizeof(rights), 0)
    if rules < 0:
        return False
    for path in paths:
        if Path(path).exists():
            place = os.open(path, os.O_PATH)
            beneath = _Beneath(_READ_FILE | (_REFER if Path(path).is_dir() else 0), place)
            failed = libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0)
            os.close(place)
            if failed:
                return False
    return libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(_RESTRICT_SELF, rules, 0) == 0


def main() -> None:
    """Returns only with an error."""
    library, folder, http, tcp = sys.argv[1:]
    Path(folder, "data").mkdir(parents=True, exist_ok=True)
    arguments = [
        "clickhouse",
        f"--path={folder}/data",
        f"--http_port={http}",
        f"--tcp_port={tcp}",
        "--listen_host=127.0.0.1",
        f"--config-file={folder}/clickhouse.xml",
        "--log-level=warning",
        "--multiquery",
        f"--query={_QUERY}",
    ]
    query = ctypes.CDLL(library).query_stable_v2
    if not read_only(f"{folder}/data", f"{folder}/clickhouse.xml", f"{folder}/users.xml", *_MACHINE):
        print("no Landlock: users of this engine can read this account's files with file()", file=sys.stderr)
    query.restype = ctypes.POINTER(_Result)
    result = query(len(arguments), (ctypes.c_char_p * len(arguments))(*(a.encode() for a in arguments)))
    error: bytes | None = result.contents.err
    sys.exit(error.decode(errors="replace") if error else "the listener ended")


if __name__ == "__main__":
    main()
