"""The page of a report: the picture and the numbers as text, in one file that needs nothing else."""

import base64
from html import escape

from infra.cli.report import Report
from infra.cli.report_picture import SEAM_HEADS, facts, png, seam_cells

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #1d2430; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ margin: 0; }} code {{ color: #6b7686; word-break: break-all; }} img {{ width: 100%; margin: 1.5rem 0; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }} dt {{ color: #6b7686; }} dd {{ margin: 0; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th {{ color: #6b7686; font-weight: normal; }} th, td {{ padding: .2rem .5rem; border-bottom: 1px solid #e3e8ee; }}
td {{ text-align: center; }}
</style></head><body>
<h1>{title}</h1><p><code>{job}</code></p>
<dl>{facts}</dl>
{remarks}
<img alt="Contact sheet and the quality of every frame" src="data:image/png;base64,{picture}">
<h2>Seams</h2>
<table><tr>{heads}</tr>{rows}</table>
<p>File <code>{uri}</code><br><code>{digest}</code>{live}</p>
</body></html>
"""


def page(report: Report) -> str:
    """HTML; everything that came from a prompt is escaped."""
    video = report.video
    rows = (seam_cells(i, start, seam) for i, (start, seam) in enumerate(zip(report.starts, video.seams, strict=False)))
    return _PAGE.format(
        title=escape(report.title or video.job_id),
        job=escape(video.job_id),
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts(report)),
        remarks="".join(f"<p>Remark on the prompt: {escape(lint.message)}</p>" for lint in report.remarks),
        picture=base64.b64encode(png(report)).decode(),
        heads="".join(f"<th>{head}</th>" for head in SEAM_HEADS),
        rows="".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows),
        uri=escape(video.video.uri),
        digest=escape(video.video.digest),
        live=f"<br>Live <code>{escape(video.live)}</code>" if video.live else "",
    )
