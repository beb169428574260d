"""The page that asks ClickHouse: the questions of docs/sql.md, or any other, reading only and within the reader's limits."""

import re
from dataclasses import dataclass
from pathlib import Path

from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from infra.web.console.facts import READ_ONLY, Warehouse
from infra.web.console.pages import Pages, form

_FILE = Path(__file__).with_name("questions.md")
_QUESTION = re.compile(r"^## ([^\n]+\?)\n(.*?)^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SERVER_WORDS = re.compile(r".*DB::Exception: | \(version .*")
_SHOWN = 500
_LIMITS = {**READ_ONLY, "max_execution_time": 15, "max_result_rows": 100_000, "result_overflow_mode": "break"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One that is asked often."""

    title: str
    about: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, as text for people."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    total: int = 0
    error: str = ""


def questions() -> tuple[Question, ...]:
    """Those of docs/sql.md."""
    found = _QUESTION.findall(_FILE.read_text(encoding="utf-8"))
    return tuple(Question(title=t, about=" ".join(about.split()), sql=sql.strip()) for t, about, sql in found)


def new_questions(pages: Pages, warehouse: Warehouse) -> APIRouter:
    """`/sql`."""
    routes = Questions(pages, warehouse)
    router = APIRouter(include_in_schema=False, prefix="/sql", dependencies=[Depends(pages.viewer)])
    router.get("")(routes.empty)
    router.post("")(routes.ask)
    return router


class Questions:
    """One method per route."""

    def __init__(self, pages: Pages, warehouse: Warehouse) -> None:
        self._pages = pages
        self._warehouse = warehouse
        self._questions = questions()

    def empty(self, request: Request, question: int = 0, job: str = "") -> Response:
        """The form, with one of the questions in it; `job` stands in it for `film`."""
        asked = self._questions[min(max(question, 0), len(self._questions) - 1)]
        sql = asked.sql.replace("'film'", f"'{re.sub(r'[^A-Za-z0-9._-]', '', job)}'") if job else asked.sql
        return self._page(request, sql, None)

    async def ask(self, request: Request) -> Response:
        """The form with an answer."""
        sql = (await form(request)).get("query", "")
        return self._page(request, sql, await run_in_threadpool(self._answer, sql.rstrip(";")))

    def _page(self, request: Request, sql: str, answer: Answer | None) -> Response:
        status = 422 if answer and answer.error else 200
        return self._pages.page(
            request, "sql.html", status, questions=self._questions, sql=sql, answer=answer, shown=_SHOWN
        )

    def _answer(self, sql: str) -> Answer:
        if not sql:
            return Answer(error="no question")
        try:
            result = self._warehouse.client().query(sql, settings=_LIMITS)
        except OperationalError:
            return Answer(error="ClickHouse is away")
        except DatabaseError as error:
            return Answer(error=_SERVER_WORDS.sub("", " ".join(str(error).split()))[:500])
        rows = tuple(tuple(_cell(value) for value in row) for row in result.result_rows[:_SHOWN])
        return Answer(columns=tuple(result.column_names), rows=rows, total=len(result.result_rows))


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
