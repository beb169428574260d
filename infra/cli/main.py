"""The `longtake` command. `main()` builds the one `Settings` of the process and passes it down."""

import importlib.metadata
import logging
import sys
from typing import Annotated

import typer
from confluent_kafka import KafkaException
from pydantic import ValidationError

from infra.cli import stack
from infra.cli.errors import CliError, Exit
from infra.settings import Settings

log = logging.getLogger(__name__)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"longtake {importlib.metadata.version('longtake')}")
        raise typer.Exit


def new_app() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="longtake",
        help="A production line for long generated video: prompt events in, finished and measured videos out.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the stack is not running, 4 not found, 5 refused.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(_options)
    app.command()(stack.worker)
    return app


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say it.")] = False,
) -> None:
    del version  # acted upon by its callback


def main() -> None:
    """Run the command line. Every error a person can do something about is one line and an exit code."""
    try:
        new_app()(obj=Settings())
    except CliError as error:
        _end(error.code, str(error))
    except ValidationError as error:
        first = error.errors()[0]
        _end(Exit.USAGE, f"LONGTAKE_{'_'.join(map(str, first['loc'])).upper()}: {first['msg']}")
    except KafkaException as error:
        _end(Exit.NOT_RUNNING, f"Kafka: {error.args[0].str()}: is the stack up? Try 'longtake status'")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        log.exception("longtake ended by an error of the program")
        sys.exit(Exit.FAILED)


def _end(code: Exit, message: str) -> None:
    print(f"longtake: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
