"""The command line, as in tests/cli."""

from tests.cli.conftest import longtake

__all__ = ["longtake"]
