"""The pages for operators name what there is: tests that exist, a part for every alert, settings by their names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from infra.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = ("docs/guarantees.md", "docs/runbook.md")
ALERTS = ROOT / "infra/deploy/prometheus/alerts.yaml"


@cache
def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def named_tests() -> list[str]:
    return sorted(set(re.findall(r"tests/[\w/]+\.py(?:::\w+)?", (ROOT / "docs/guarantees.md").read_text())))


def anchors(page: str) -> set[str]:
    """Of its headings, as Markdown viewers make them."""
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", named_tests())
def test_every_test_that_a_guarantee_names_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert function, "a guarantee names a test, not a file"
    assert function in functions_in(ROOT / file)


def test_every_guarantee_names_a_test() -> None:
    text = (ROOT / "docs/guarantees.md").read_text()
    tables = re.findall(r"^\| promise .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row.rsplit("|", 2)[1]] == []


def test_every_alert_leads_to_a_part_of_the_runbook() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    links = [rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule]
    assert links
    assert {link.partition("#")[0] for link in links} == {"docs/runbook.md"}
    assert {link.partition("#")[2] for link in links} <= anchors("docs/runbook.md")


@pytest.mark.parametrize("page", PAGES)
def test_links_within_a_page_lead_somewhere(page: str) -> None:
    assert set(re.findall(r"\]\(#([\w-]+)\)", (ROOT / page).read_text())) <= anchors(page)


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_on_a_page_is_one(page: str) -> None:
    named = set(re.findall(r"LONGTAKE_([A-Z_]+)", (ROOT / page).read_text()))
    assert {name.lower() for name in named} <= set(Settings.model_fields)
