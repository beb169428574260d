"""`python listener.py LIBCHDB FOLDER HTTP_PORT TCP_PORT`: ClickHouse's engine, listening on loopback until it is killed.

`query_stable_v2` of libchdb is `clickhouse local`; a query that never ends keeps it up, and `SYSTEM START LISTEN` inside
it starts ClickHouse's own HTTP and native handlers. It is the engine, not the official server build: no TLS, no Keeper.
Standard library only.
"""

import ctypes
import sys

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


def main() -> None:
    """Returns only with an error."""
    library, folder, http, tcp = sys.argv[1:]
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
    query.restype = ctypes.POINTER(_Result)
    result = query(len(arguments), (ctypes.c_char_p * len(arguments))(*(a.encode() for a in arguments)))
    error: bytes | None = result.contents.err
    sys.exit(error.decode(errors="replace") if error else "the listener ended")


if __name__ == "__main__":
    main()
