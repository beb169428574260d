"""longtake.dead-letters.v1: what was put aside, mended in the browser and sent back to its topic."""

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from infra.bus.dead_letters import dead_letters, find
from infra.bus.letter import DeadLetter
from infra.bus.mended import MendError, from_text, to_text
from infra.settings import Settings
from infra.web.api import Parts
from infra.web.console.pages import Pages, form, see
from schemas.errors import BadInputError

_SHOWN = 500


def new_letters(parts: Parts, pages: Pages, settings: Settings) -> APIRouter:
    """`/dead-letters` and below."""
    routes = Letters(parts, pages, settings)
    router = APIRouter(include_in_schema=False, prefix="/dead-letters")
    router.get("", dependencies=[Depends(pages.viewer)])(routes.letters)
    router.get("/{letter_id}", dependencies=[Depends(pages.viewer)])(routes.letter)
    router.post("/{letter_id}", dependencies=[Depends(pages.operator)])(routes.replay)
    return router


class Letters:
    """One method per route."""

    def __init__(self, parts: Parts, pages: Pages, settings: Settings) -> None:
        self._parts = parts
        self._pages = pages
        self._settings = settings

    def letters(self, request: Request, replayed: str = "") -> Response:
        """The newest first."""
        found = sorted(dead_letters(self._settings), key=lambda letter: letter.time_us, reverse=True)
        return self._pages.page(request, "letters.html", letters=found[:_SHOWN], total=len(found), replayed=replayed)

    def letter(self, request: Request, letter_id: str) -> Response:
        """One, decoded, to be mended."""
        letter = find(self._settings, letter_id)
        if letter is None:
            return self._pages.page(request, "unknown.html", 404, what=f"dead letter {letter_id}")
        return self._letter(request, letter, to_text(letter).decode(), "")

    async def replay(self, request: Request, letter_id: str) -> Response:
        """Send it as it was mended, to the topic it came from."""
        given = await form(request)
        letter = await run_in_threadpool(find, self._settings, letter_id)
        if letter is None:
            return self._pages.page(request, "unknown.html", 404, what=f"dead letter {letter_id}")
        text = given.get("record", "")
        try:
            output = from_text(text.encode())
        except (MendError, BadInputError) as error:
            return self._letter(request, letter, text, str(error))
        if output.topic != letter.original.topic:
            return self._letter(request, letter, text, f"it came from {letter.original.topic} and goes back there")
        await run_in_threadpool(self._parts.writer.write, [output])
        return see(f"/dead-letters?replayed={letter_id}")

    def _letter(self, request: Request, letter: DeadLetter, text: str, error: str) -> Response:
        status = 422 if error else 200
        return self._pages.page(request, "letter.html", status, letter=letter, text=text, error=error)
