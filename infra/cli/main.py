"""The `longtake` command. `main()` builds the one `Settings` of the process and passes it down."""

import importlib.metadata
import logging
import sys
from typing import Annotated

import typer
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from confluent_kafka import KafkaException
from obstore.exceptions import BaseError
from pydantic import ValidationError

from infra.bus.errors import BusError
from infra.cli import (
    acls,
    asset,
    demo,
    diagnose,
    door,
    insights,
    jobs,
    letters,
    link,
    plan,
    registry,
    release,
    report,
    sql,
    stack,
    submit,
    sweep,
    topics,
    watch,
    worker,
)
from infra.cli.errors import CliError, Exit
from infra.local.packages import PackageError
from infra.local.process import ServiceError
from infra.local.services import NotRunningError
from infra.objects import BlobError
from infra.redact import redacted, visible
from infra.settings import Settings
from schemas.errors import BadInputError

_LINE, _JOBS, _LOOK = "The stack", "Jobs", "Looking inside"


def _say_version(wanted: bool) -> None:
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
    for command in (
        demo.demo,
        stack.up,
        stack.down,
        stack.status,
        stack.doctor,
        stack.env,
        stack.setup,
        worker.worker,
        door.door,
        door.console,
    ):
        app.command(rich_help_panel=_LINE)(command)
    app.command(rich_help_panel=_JOBS, epilog=submit.EXAMPLES)(submit.submit)
    app.command(rich_help_panel=_JOBS, epilog=watch.EXAMPLES)(watch.watch)
    for command in (jobs.jobs, jobs.show, jobs.fetch, link.link, jobs.cancel, jobs.retry):
        app.command(rich_help_panel=_JOBS)(command)
    app.command(rich_help_panel=_LOOK)(report.report)
    app.command(rich_help_panel=_LOOK, epilog=sql.EXAMPLES)(sql.sql)
    app.command(rich_help_panel=_LOOK)(topics.topics)
    app.command(rich_help_panel=_LOOK)(sweep.sweep)
    app.command(rich_help_panel=_LOOK, epilog=diagnose.EXAMPLES)(diagnose.diagnose)
    app.command(rich_help_panel=_LOOK, epilog=plan.EXAMPLES)(plan.plan)
    app.add_typer(acls.app, name="acls", rich_help_panel=_LINE)
    app.add_typer(asset.app, name="asset", rich_help_panel=_JOBS)
    app.add_typer(letters.app, name="dead-letters", rich_help_panel=_LOOK)
    app.add_typer(insights.app, name="insights", rich_help_panel=_LOOK)
    app.add_typer(registry.app, name="registry", rich_help_panel=_LOOK)
    app.add_typer(release.app, name="release", rich_help_panel=_LINE)
    return app


def main() -> None:
    """Run the command line. Every error a person can do something about is one line and an exit code."""
    logging.getLogger().addHandler(logging.NullHandler())  # only workers log; clients say their errors by exceptions
    try:
        new_app()(obj=Settings())
    except CliError as error:
        _end(error.code, str(error))
    except ValidationError as error:
        first = error.errors()[0]
        where = f"LONGTAKE_{'_'.join(map(str, first['loc'])).upper()}: " if first["loc"] else ""
        _end(Exit.USAGE, where + first["msg"].removeprefix("Value error, "))
    except NotRunningError as error:
        _end(Exit.NOT_RUNNING, str(error))
    except KafkaException as error:
        _end(Exit.NOT_RUNNING, f"Kafka: {error.args[0].str()}: is it running? 'longtake doctor' says more")
    except BusError as error:
        _end(Exit.NOT_RUNNING, f"Kafka: {error}")
    except OperationalError as error:
        _end(Exit.NOT_RUNNING, f"ClickHouse: {str(error).splitlines()[0]}: is it running? 'longtake doctor' says more")
    except DatabaseError as error:
        _end(Exit.REFUSED, f"ClickHouse: {' '.join(str(error).split())[:500]}")
    except BadInputError as error:
        _end(Exit.FAILED, f"a record cannot be read: {error}")
    except BlobError as error:
        _end(Exit.NOT_FOUND, str(error))
    except BaseError as error:
        _end(Exit.FAILED, f"the object store: {str(error).partition(chr(10))[0]}")
    except (ServiceError, PackageError) as error:
        _end(Exit.FAILED, str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True, help="And exit.")] = False,
) -> None:
    del version  # its callback has acted


def _end(code: Exit, message: str) -> None:
    print(f"longtake: {visible(redacted(message))}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
