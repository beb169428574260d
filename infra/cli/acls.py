"""`longtake acls`: who may do what on the bus."""

import re
from typing import Annotated

import typer

from infra import acls
from infra.bus import clients
from infra.cli.errors import CliError, Exit
from infra.cli.output import say
from infra.cli.reach import reach

app = typer.Typer(help="Kafka ACLs of every role, as infra/deploy/acls has them.", no_args_is_help=True)
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Roles = Annotated[list[str] | None, typer.Argument(metavar="ROLE...", help="Nothing: every role.")]
User = Annotated[str, typer.Option(help="The SCRAM user, or the certificate's common name, that is to have them.")]


@app.command()
def show(roles: Roles = None, user: User = "") -> None:
    """Print what each role may do. Every user has the name of its role, if none is given."""
    for role, name in _wanted(roles, user):
        for binding in acls.bindings(role, name):
            say(acls.line(binding))


@app.command("apply")
def apply_acls(ctx: typer.Context, roles: Roles = None, user: User = "") -> None:
    """Make the roles' ACLs on the broker. What is there already stays; what is there beyond them is named."""
    client = clients.admin(reach(ctx, "kafka"))
    for role, name in _wanted(roles, user):
        wanted = acls.bindings(role, name)
        acls.apply(client, wanted)
        say(f"User:{name} may do what a {role} does: {len(wanted)} ACLs")
        for binding in acls.beyond(client, name, wanted):
            say(f"  and beyond that: {acls.line(binding)}")


def _wanted(roles: list[str] | None, user: str) -> list[tuple[str, str]]:
    unknown = sorted(set(roles or ()) - set(acls.roles()))
    if unknown:
        raise CliError(Exit.USAGE, f"no role {unknown[0]!r}: there are {', '.join(acls.roles())}")
    if user and (not _USER.fullmatch(user) or len(roles or ()) != 1):
        raise CliError(Exit.USAGE, "--user is one name of letters, digits, '.', '_' and '-', for one role")
    return [(role, user or role) for role in roles or acls.roles()]
