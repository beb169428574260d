"""jobs, show, fetch, cancel, retry, dead-letters, topics, status on a real broker."""

from dataclasses import replace
from pathlib import Path

import pytest

from infra.bus import clients
from infra.bus.letter import dead_letter
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.objects import Objects
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import (
    Blob,
    CancelRequested,
    PromptSubmitted,
    RenditionVideo,
    RetryRequested,
    SegmentGenerated,
    Stage,
)
from schemas.topics import DEAD_LETTERS, TOPICS, Event
from tests.cli.conftest import Longtake
from tests.cli.events import SUBMITTED_US, finished, job, refused, say
from tests.director.builders import message, prompt


def control(settings: Settings) -> list[Event]:
    with Reader.from_beginning(settings, [CancelRequested.topic]) as reader:
        return [event_of(message) for message in reader.to_end()]


def stored(settings: Settings, tmp_path: Path) -> Blob:
    file = tmp_path / "made.mp4"
    file.write_bytes(b"a video")
    return Objects(settings.objects).put_file("jobs/film/videos/1.mp4", file, "video/mp4", algorithm="sha256")


def test_jobs_are_listed_by_their_last_state_the_newest_first(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job("old"), job("new", submitted_us=SUBMITTED_US + 1), job("old", Stage.FINISHED, done=2))
    listed = longtake(bus_settings, "jobs", "--json").json()
    assert [(j["job_id"], j["stage"]) for j in listed] == [("new", "generating"), ("old", "finished")]
    assert [j["job_id"] for j in longtake(bus_settings, "jobs", "--json", "--stage", "finished").json()] == ["old"]
    printed = longtake(bus_settings, "jobs").out
    assert "[bold]A fox[/bold]" in printed


def test_a_job_is_shown_with_its_video_and_refusals(bus_settings: Settings, longtake: Longtake) -> None:
    say(
        bus_settings,
        job(stage=Stage.FINISHED, done=2),
        replace(finished(), live="s3://films/jobs/film/live/master.m3u8"),
        refused(),
    )
    shown = longtake(bus_settings, "show", "film", "--json").json()
    assert shown["job"]["stage"] == "finished"
    assert shown["video"]["seams"][1]["gain"] == 1.03
    assert shown["refusals"][0]["rule"] == "range"
    for_people = longtake(bus_settings, "show", "film").out
    assert "worst frame 39.50" in for_people
    assert "1.0300" in for_people
    assert "live         s3://films/jobs/film/live/master.m3u8" in for_people
    assert longtake(bus_settings, "show", "ghost").code == 4


def test_a_fetched_video_has_the_bytes_that_were_announced(
    bus_settings: Settings, longtake: Longtake, tmp_path: Path
) -> None:
    blob = stored(bus_settings, tmp_path)
    say(bus_settings, job(stage=Stage.FINISHED, done=2), finished(video=blob))
    target = tmp_path / "film.mp4"
    assert longtake(bus_settings, "fetch", "film", "-o", str(target)).code == 0
    assert target.read_bytes() == b"a video"


def test_a_rendition_is_fetched_by_the_name_of_its_device(
    bus_settings: Settings, longtake: Longtake, tmp_path: Path
) -> None:
    phone = RenditionVideo(
        name="iphone-15-pro", codec="hvc1.2.4.L123.90", width=1280, height=720, video=stored(bus_settings, tmp_path)
    )
    say(bus_settings, job(stage=Stage.FINISHED, done=2), replace(finished(), renditions=(phone,)))
    target = tmp_path / "phone.mp4"
    assert longtake(bus_settings, "fetch", "film", "--rendition", "iphone-15-pro", "-o", str(target)).code == 0
    assert target.read_bytes() == b"a video"
    missing = longtake(bus_settings, "fetch", "film", "--rendition", "nokia")
    assert (missing.code, "there are: iphone-15-pro" in missing.err) == (4, True)
    assert "rendition    iphone-15-pro: 1280x720, hvc1.2.4.L123.90" in longtake(bus_settings, "show", "film").out


def test_subtitles_that_lie_beside_a_video_are_fetched_with_it(
    bus_settings: Settings, longtake: Longtake, tmp_path: Path
) -> None:
    objects = Objects(bus_settings.objects)
    subtitles = objects.put_bytes("jobs/film/videos/1-subtitles.vtt", b"WEBVTT\n", "text/vtt")
    video = stored(bus_settings, tmp_path)
    say(bus_settings, job(stage=Stage.FINISHED, done=2), replace(finished(video=video), subtitles=subtitles))
    assert longtake(bus_settings, "fetch", "film", "-o", str(tmp_path / "film.mp4")).code == 0
    assert (tmp_path / "film.vtt").read_bytes() == b"WEBVTT\n"


def test_a_damaged_video_is_not_fetched(bus_settings: Settings, longtake: Longtake, tmp_path: Path) -> None:
    blob = stored(bus_settings, tmp_path)
    (Path(bus_settings.objects.removeprefix("file://")) / "jobs/film/videos/1.mp4").write_bytes(b"a vide0")
    say(bus_settings, job(stage=Stage.FINISHED, done=2), finished(video=blob))
    ran = longtake(bus_settings, "fetch", "film", "-o", str(tmp_path / "film.mp4"))
    assert ran.code == 4
    assert "digest" in ran.err
    assert not (tmp_path / "film.mp4").exists()


def test_an_unfinished_job_has_no_video_to_fetch(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job())
    ran = longtake(bus_settings, "fetch", "film")
    assert ran.code == 4
    assert "film" in ran.err
    assert "generating" in ran.err


def test_cancel_and_retry_are_asked_for_where_they_make_sense(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job("runs"), job("broken", Stage.FAILED), job("stopped", Stage.CANCELLED))
    assert longtake(bus_settings, "retry", "stopped").code == 0
    assert longtake(bus_settings, "cancel", "runs", "--reason", "wrong fox").code == 0
    assert longtake(bus_settings, "retry", "broken", "--from-segment", "1").code == 0
    assert longtake(bus_settings, "retry", "runs").code == 5
    assert longtake(bus_settings, "cancel", "broken").code == 5
    asked = {event.job_id: event for event in control(bus_settings)}  # type: ignore[union-attr]
    assert isinstance(asked["runs"], CancelRequested)
    assert asked["runs"].reason == "wrong fox"
    assert isinstance(asked["broken"], RetryRequested)
    assert asked["broken"].from_segment == 1
    assert isinstance(asked["stopped"], RetryRequested)
    assert asked["stopped"].from_segment > 10_000  # all that is there is kept


@pytest.fixture
def dead_letter_of_a_prompt(bus_settings: Settings) -> Settings:
    reasons = {"topic": "longtake.prompts.v1", "partition": "0", "offset": "7", "group": "longtake.director"}
    reasons |= {"field": "value", "rule": "framing", "message": "neither Avro nor JSON", "time_us": str(SUBMITTED_US)}
    headers = [("mine", b"1"), *((f"dlq.{name}", value.encode()) for name, value in reasons.items())]
    producer = clients.plain_producer(bus_settings, "test")
    producer.produce(DEAD_LETTERS, b"\xff\xfe not a prompt", b"film", 0, headers=headers)
    producer.flush()
    return bus_settings


def test_dead_letters_are_listed_shown_and_sent_back(dead_letter_of_a_prompt: Settings, longtake: Longtake) -> None:
    (listed,) = longtake(dead_letter_of_a_prompt, "dead-letters", "list", "--json").json()
    assert (listed["id"], listed["topic"], listed["rule"], listed["key"]) == (
        "0-0",
        "longtake.prompts.v1",
        "framing",
        "film",
    )
    assert "neither Avro nor JSON" in longtake(dead_letter_of_a_prompt, "dead-letters", "list").out
    shown = longtake(dead_letter_of_a_prompt, "dead-letters", "show", "0-0").out
    assert "mine: 1" in shown
    assert longtake(dead_letter_of_a_prompt, "dead-letters", "replay", "0-0").code == 0
    with Reader.from_beginning(dead_letter_of_a_prompt, [PromptSubmitted.topic]) as reader:
        (again,) = reader.to_end()
    assert (again.key, again.value, again.headers) == (b"film", b"\xff\xfe not a prompt", (("mine", b"1"),))


def test_replaying_needs_a_known_letter(dead_letter_of_a_prompt: Settings, longtake: Longtake) -> None:
    assert longtake(dead_letter_of_a_prompt, "dead-letters", "replay", "3-99").code == 4
    assert longtake(dead_letter_of_a_prompt, "dead-letters", "replay").code == 2
    assert longtake(dead_letter_of_a_prompt, "dead-letters", "replay", "--all").out == "replayed 1\n"


def test_a_dead_letter_is_mended_in_a_file_and_replayed(
    bus_settings: Settings, longtake: Longtake, tmp_path: Path
) -> None:
    wish = prompt(job_id="film", width=641)
    original = message(wish, headers=(("traceparent", b"mine"),))
    error = BadInputError(field="width", rule="even", message="641 is odd")
    with Writer(bus_settings) as writer:
        writer.write([replace(dead_letter(original, error, group="longtake.director", time_us=1), partition=0)])
    assert longtake(bus_settings, "dead-letters", "list", "--json").json()[0]["record"]["width"] == 641
    assert '"width": 641' in longtake(bus_settings, "dead-letters", "show", "0-0").out
    file = tmp_path / "letter.json"
    assert longtake(bus_settings, "dead-letters", "edit", "0-0", "-o", str(file)).code == 0
    assert longtake(bus_settings, "dead-letters", "edit", "0-0", "-o", str(file)).code == 2, "no file is overwritten"
    file.write_text(file.read_text().replace('"width": 641', '"width": "wide"'))
    ran = longtake(bus_settings, "dead-letters", "replay", "--file", str(file))
    assert (ran.code, "width" in ran.err) == (2, True)
    file.write_text(file.read_text().replace('"wide"', "640"))
    assert longtake(bus_settings, "dead-letters", "replay", "--file", str(file)).out == "replayed 1\n"
    with Reader.from_beginning(bus_settings, [PromptSubmitted.topic]) as reader:
        (again,) = reader.to_end()
    assert event_of(again) == replace(wish, width=640)
    assert (again.key, again.headers) == (b"film", (("traceparent", b"mine"),))


def test_what_a_producer_wrote_does_not_steer_a_terminal(bus_settings: Settings, longtake: Longtake) -> None:
    steers = "\x1b]0;mine\x07\x9b2J\r"
    say(bus_settings, replace(refused("film"), field=steers))
    error = BadInputError(field=steers, rule="unknown_field", message=steers)
    with Writer(bus_settings) as writer:
        original = replace(message(prompt()), key=steers.encode(), headers=((steers, steers.encode()),))
        letter = dead_letter(original, error, group="longtake.director", time_us=1)
        writer.write([replace(letter, partition=0)])
    for command in (("show", "film"), ("dead-letters", "list"), ("dead-letters", "show", "0-0")):
        printed = longtake(bus_settings, *command)
        assert printed.code == 0
        assert "\\x1b]0;mine" in printed.out
        assert not {"\x1b", "\x07", "\x9b", "\r"} & set(printed.out)


def test_dead_letters_of_one_topic_are_replayed(dead_letter_of_a_prompt: Settings, longtake: Longtake) -> None:
    replay = ("dead-letters", "replay", "--topic")
    assert longtake(dead_letter_of_a_prompt, *replay, "longtake.videos.v1").out == "replayed 0\n"
    assert longtake(dead_letter_of_a_prompt, *replay, "longtake.prompts.v1").out == "replayed 1\n"


def test_topics_are_listed_with_their_ends(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job("a"), job("b"))
    listed = {topic["topic"]: topic for topic in longtake(bus_settings, "topics", "--json").json()}
    assert set(listed) == {topic.name for topic in TOPICS}
    assert listed["longtake.jobs.v1"]["end"] == 2
    assert listed["longtake.jobs.v1"]["compacted"]
    assert listed[SegmentGenerated.topic]["records"] == ["SegmentGenerated", "SegmentFailed"]
    assert "longtake.jobs.v1" in longtake(bus_settings, "topics").out


def test_status_lists_the_jobs_in_work(bus_settings: Settings, longtake: Longtake) -> None:
    say(bus_settings, job("runs"), job("done", Stage.FINISHED, done=2))
    seen = longtake(bus_settings, "status", "--json").json()
    assert [j["job_id"] for j in seen["working"]] == ["runs"]
    assert seen["kafka"] == bus_settings.kafka
    assert longtake(bus_settings, "status").code == 0
