"""What can go wrong for a person at the command line, and the exit codes that programs go by."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of `longtake`."""

    OK = 0
    FAILED = 1
    """The job failed, a gate refused the video, or a program error."""
    USAGE = 2
    NOT_RUNNING = 3
    """Kafka or ClickHouse does not answer."""
    NOT_FOUND = 4
    REFUSED = 5
    """The line refused the prompt, or a query was not allowed."""


class CliError(Exception):
    """One line for the person: what is wrong and what to do about it."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
