"""What a command needs before it can do anything: the addresses of the services."""

import typer

from infra.local.services import resolve
from infra.settings import Settings


def settings_of(ctx: typer.Context) -> Settings:
    """The settings `main()` built."""
    settings: Settings = ctx.obj
    return settings


def reach(ctx: typer.Context, *names: str) -> Settings:
    """Settings with these addresses, from the running stack where they are empty. Raises: NotRunningError."""
    settings = settings_of(ctx)
    return settings if all(getattr(settings, name) for name in names) else resolve(settings)
