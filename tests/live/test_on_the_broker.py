"""The role as a process on a real broker: what passed is live at once, and a kill loses nothing."""

import re
import time
from dataclasses import replace
from pathlib import Path

from httpx import Response
from pydantic import SecretStr

from infra.bus.writer import Writer
from infra.settings import Settings
from schemas import records
from schemas.headers import trace_root
from schemas.topics import Event
from tests.bus.line import eventually
from tests.live.stage import Stage, checked, finished
from tests.stitcher.test_on_the_broker import worker
from tests.web.test_door import changed, opened

MODULE = "streams.live.publisher"
FIRST_S = 2.0


def test_the_first_piece_is_live_within_two_seconds_of_its_verdict_and_a_kill_loses_nothing(
    bus_settings: Settings, tmp_path: Path
) -> None:
    stage = Stage(tmp_path)
    first, second, third = stage.pieces

    def live() -> int:
        files = stage.files()
        text = files.get("main.m3u8", b"").decode()
        return text.count("#EXTINF") if "master.m3u8" in files else 0

    with Writer(bus_settings) as writer:

        def says(event: Event) -> None:
            writer.publish([event], trace_root("line"), source="longtake/check-pieces")

        with worker(bus_settings, MODULE) as process:
            says(replace(checked(first), job_id="other"))
            eventually(lambda: any(stage.objects.listed("jobs/other/live")), "the worker")
            begun_s = time.monotonic()
            says(checked(first))
            eventually(lambda: live() == 1, "the first piece")
            assert time.monotonic() - begun_s <= FIRST_S
            says(checked(second))
            process.kill()
            process.wait()
        says(checked(third))
        says(finished(stage.pieces))
        with worker(bus_settings, MODULE):
            eventually(lambda: stage.read("main.m3u8").endswith("#EXT-X-ENDLIST\n"), "the end")
    assert live() == 3


def test_the_door_serves_what_is_live_to_viewers_and_whoever_has_a_link(bus_settings: Settings, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.publisher()(checked(stage.pieces[0]))
    passwords = {"door_operator_password": SecretStr("operator"), "door_viewer_password": SecretStr("viewer")}
    with opened(bus_settings.model_copy(update=passwords)) as line:
        base, viewer = "/v1/jobs/job/live", {"Authorization": "Bearer viewer"}

        def get(name: str, headers: dict[str, str] | None = None) -> Response:
            return line.client.get(f"{base}{name}", headers=headers, follow_redirects=False)

        assert [get(name).status_code for name in ("", "/master.m3u8", "/main.init.mp4")] == [401] * 3
        playlist = get("/main.m3u8", viewer)
        assert playlist.text == stage.read("main.m3u8")
        kinds = {name: get(f"/{name}", viewer).headers for name in stage.files()}
        assert {name.rpartition(".")[2]: h["Content-Type"] for name, h in kinds.items()} == {
            "m3u8": "application/vnd.apple.mpegurl",
            "mp4": "video/mp4",
            "m4s": "video/iso.segment",
        }
        assert {name for name, h in kinds.items() if h["Cache-Control"] == "no-store"} == {"main.m3u8", "master.m3u8"}
        for name in ("/end-86", "/wait-00000-1-1-a", "/..%2Fpieces%2Fa.mp4", "/none.m4s"):
            assert get(name, viewer).status_code == 404
        assert line.client.get("/v1/jobs/other/live", headers=viewer).status_code == 404

        address = get("", viewer).headers["Location"].removeprefix("live")
        master = get(address).text
        (main,) = [text for text in master.splitlines() if not text.startswith("#")]
        text = get(f"/{main}").text
        for uri in re.findall(r'^[^#].*$|(?<=URI=").*(?=")', text, re.MULTILINE):
            assert get(f"/{uri}").content == stage.files()[uri.partition("?")[0]]
        assert get(f"/{main}0").status_code == 403
        assert line.client.get(f"/v1/jobs/other/live/{main}").status_code == 403

        line.says(changed("job", stage=records.Stage.FAILED))
        assert get("/main.m3u8", viewer).text == playlist.text + "#EXT-X-ENDLIST\n"
