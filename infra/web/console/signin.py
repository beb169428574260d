"""Signing in and out: a password for a cookie that no script reads and no other site's page sends."""

import asyncio
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from infra.web.access import Access
from infra.web.console.pages import ROOT, Pages, form
from infra.web.sessions import COOKIE, SESSION_S, Role

_WRONG_S = 1.0
"""Guessing takes this long each."""


def new_signin(access: Access, pages: Pages) -> APIRouter:
    """`/sign-in`, `/sign-out`."""
    routes = SignIn(access, pages)
    router = APIRouter(include_in_schema=False, dependencies=[Depends(access.check_origin)])
    router.get("/sign-in")(routes.empty)
    router.post("/sign-in")(routes.sign_in)
    router.post("/sign-out")(routes.sign_out)
    return router


class SignIn:
    """One method per route."""

    def __init__(self, access: Access, pages: Pages) -> None:
        self._access = access
        self._pages = pages

    def empty(self, request: Request, next: str = "") -> Response:  # noqa: A002 (the name in the address)
        """The form. `next` is where to go afterwards."""
        return self._pages.page(request, "signin.html", next=_inside(next), error="")

    async def sign_in(self, request: Request) -> Response:
        """To where they wanted to go, or the form again."""
        given = await form(request)
        role, target = self._access.role_of(given.get("password", "")), _inside(given.get("next", ""))
        if role == Role.NOBODY:
            await asyncio.sleep(_WRONG_S)
            return self._pages.page(request, "signin.html", 403, next=target, error="That is not the password.")
        response = RedirectResponse(target, 303)
        secure = request.url.scheme == "https" or request.headers.get("X-Forwarded-Proto") == "https"
        cookie = self._access.sessions.make(role)
        response.set_cookie(COOKIE, cookie, max_age=SESSION_S, httponly=True, samesite="strict", secure=secure)
        return response

    def sign_out(self) -> Response:
        """And forget the cookie."""
        response = RedirectResponse(f"{ROOT}/sign-in", 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response


def _inside(target: str) -> str:
    """A path of this console and nothing else: the address in the link may come from anybody."""
    parts = urlsplit(target)
    inside = not parts.scheme and not parts.netloc and parts.path.startswith(f"{ROOT}/")
    return target if inside and "\\" not in target else f"{ROOT}/jobs"
