# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # What did the line make, and how good is it?
# Runs as a script, or cell by cell in an editor or in Jupyter (`jupytext --to ipynb`).
# `eval "$(longtake env)"` sets the address and the password.

# %%
import os
from urllib.parse import urlsplit

import clickhouse_connect

address = urlsplit(os.environ["LONGTAKE_CLICKHOUSE"])
client = clickhouse_connect.get_client(
    interface=address.scheme,
    host=address.hostname,
    port=address.port,
    username=address.username,
    password=os.environ["LONGTAKE_CLICKHOUSE_PASSWORD"],
    database=address.path.strip("/"),
)


def show(question: str, query: str) -> None:
    """The answer as lines of text."""
    answer = client.query(query)
    print(f"\n{question}\n" + " | ".join(answer.column_names))
    for row in answer.result_rows:
        print(" | ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row))


# %%
show(
    "The last videos, and how long each took",
    """
    SELECT job_id, frames, round(duration_us / 1e6, 1) AS seconds, vmaf_mean, psnr_y_min,
           round((finished_us - submitted_us) / 1e6, 1) AS made_in_s
    FROM videos WHERE finished_us IS NOT NULL ORDER BY finished_us DESC LIMIT 10
    """,
)

# %%
show(
    "The worst second of each video, and which segment it came from",
    """
    SELECT job_id, intDiv(pts_us, 1000000) AS second, any(segment) AS segment, round(avg(vmaf), 2) AS vmaf
    FROM frames GROUP BY job_id, second ORDER BY vmaf LIMIT 1 BY job_id
    """,
)

# %%
show(
    "What the stitcher had to undo",
    """
    SELECT kind, count() AS seams, round(avg(abs(gain - 1)) * 100, 2) AS exposure_percent,
           round(avg(sqrt(shift_x_px * shift_x_px + shift_y_px * shift_y_px)), 2) AS shift_px,
           round(min(score), 2) AS worst_score
    FROM seams GROUP BY kind ORDER BY seams DESC
    """,
)

# %%
show(
    "Where one frame came from",
    """
    SELECT f.job_id, f.frame, f.segment, f.piece, f.blended, s.engine, s.engine_version, s.attempt AS attempt, f.trace_id
    FROM frames AS f JOIN segments AS s ON s.job_id = f.job_id AND s.segment = f.segment
    ORDER BY f.vmaf, f.job_id, f.frame LIMIT 1
    """,
)
