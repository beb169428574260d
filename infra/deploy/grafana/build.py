"""`python -m infra.deploy.grafana.build` writes the dashboards: the layout is the same everywhere."""

import json
from pathlib import Path
from typing import Any

from infra.deploy.grafana.clickhouse import QUALITY
from infra.deploy.grafana.panel import Panel
from infra.deploy.grafana.prometheus import FLEET, LINE

DASHBOARDS = Path(__file__).parent / "dashboards"
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3
_LEAST_STEP = "1m"
PAGES = {
    "line": ("Longtake: the line", "prometheus", LINE),
    "fleet": ("Longtake: the fleet", "prometheus", FLEET),
    "quality": ("Longtake: quality", "clickhouse", QUALITY),
}


def page(name: str) -> str:
    """A dashboard as Grafana's JSON."""
    title, source, panels = PAGES[name]
    return json.dumps(
        {
            "uid": f"longtake-{name}",
            "title": title,
            "tags": ["longtake"],
            "schemaVersion": 41,
            "editable": False,
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "panels": [_panel(panel, source, index) for index, panel in enumerate(panels)],
        },
        indent=1,
    )


def _panel(panel: Panel, source: str, index: int) -> dict[str, Any]:
    row, column = divmod(index, _COLUMNS)
    kinds = {"prometheus": "prometheus", "clickhouse": "grafana-clickhouse-datasource"}
    return {
        "id": index + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        **({"interval": _LEAST_STEP} if source == "clickhouse" else {}),
        "datasource": {"type": kinds[source], "uid": source},
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [_target(query, source, panel.kind, chr(ord("A") + n)) for n, query in enumerate(panel.queries)],
    }


def _target(query: tuple[str, str], source: str, kind: str, letter: str) -> dict[str, Any]:
    text, legend = query
    if source == "prometheus":
        return {"refId": letter, "expr": text, "legendFormat": legend}
    return {
        "refId": letter,
        "rawSql": text,
        "queryType": kind,
        "editorType": "sql",
        "format": 1 if kind == "table" else 0,
    }


def main() -> None:
    """Write them all."""
    for name in PAGES:
        (DASHBOARDS / f"{name}.json").write_text(page(name) + "\n")


if __name__ == "__main__":
    main()
