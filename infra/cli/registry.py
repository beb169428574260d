"""`longtake registry`: the schemas for consumers that look them up."""

from typing import Annotated

import typer

from infra.cli.errors import CliError, Exit
from infra.cli.output import say
from infra.cli.reach import settings_of
from infra.registry import Registry, RegistryError
from schemas.ids import versions

app = typer.Typer(help="The schemas, for consumers that look them up in a registry.", no_args_is_help=True)


@app.callback()
def registry() -> None:
    """The schemas, for consumers that look them up in a registry."""


@app.command("import")
def import_ids(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(help="Of a Confluent-compatible registry.")],
    user: Annotated[str, typer.Option(help="Sign in as; the password is LONGTAKE_REGISTRY_PASSWORD.")] = "",
) -> None:
    """Import every schema under its id of schemas/ids.lock. Safe to repeat."""
    try:
        with Registry(url, user, settings_of(ctx).registry_password.get_secret_value()) as target:
            done = target.take_in(versions())
    except RegistryError as error:
        raise CliError(Exit.FAILED, str(error)) from error
    say(f"{done.new} schemas imported, {done.known} were there")
