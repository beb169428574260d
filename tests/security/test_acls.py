"""Every role does its work under its own ACLs on a broker that checks certificates, passwords and rights; and nothing else."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
)
from confluent_kafka.admin import AclOperation

from infra import acls
from infra.bus import clients
from infra.bus.access import client_access, tls_context
from infra.bus.clients import Member
from infra.bus.reader import Reader, event_of
from infra.bus.topics import create_topics
from infra.bus.writer import Writer, publish
from infra.clickhouse import connect_reader
from infra.clickhouse_users import READER, WRITER
from infra.local.clickhouse import LocalClickHouse
from infra.local.kafka_tls import ADMIN
from infra.local.packages import libchdb
from infra.local.process import Process
from infra.local.release import kafka_release
from infra.local.services import environment
from infra.local.supervisor import ROLES
from infra.settings import Settings
from infra.web.console.events import records
from infra.web.console.fleet import groups
from infra.web.view import View
from schemas.codec import decode
from schemas.headers import trace_root
from schemas.records import CancelRequested, JobProgress, JobState, PlayReported, PromptSubmitted, Stage, VideoFinished
from schemas.topics import DEAD_LETTERS, TOPICS
from streams.decider import INPUTS
from streams.releases.known import read_releases
from tests.cli import events
from tests.cli.conftest import Longtake
from tests.security.bus import SecuredBus, secured_bus
from tests.security.pki import Authority

pytestmark = pytest.mark.timeout(300)
PATIENCE_S = 90.0
NAMES = [topic.name for topic in TOPICS]
PROMPT = PromptSubmitted(job_id="harbour", text="A boat leaves the harbour", duration_s=2.0, width=128, height=72)
PLAY = PlayReported(
    job_id="harbour",
    play="1",
    first_frame_ms=90,
    played_ms=2000,
    stalls=0,
    stalled_ms=0,
    decode_errors=0,
    dropped_frames=0,
    player="test",
    reported_us=1,
)
DENIED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBus]:
    with secured_bus(tmp_path_factory.mktemp("secured")) as bus:
        yield bus


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalClickHouse]:
    folder = tmp_path_factory.mktemp("clickhouse")
    engine = LocalClickHouse(library=libchdb(Settings()), folder=folder, log=folder / "clickhouse.log")
    engine.start()
    try:
        engine.ready()
        yield engine
    finally:
        engine.kill()


@contextmanager
def line(bus: SecuredBus, engine: LocalClickHouse, logs: Path) -> Iterator[None]:
    """A worker of every role, each as its own user; those that write rows as the writer."""
    rows = {"clickhouse": engine.url_of(WRITER), "clickhouse_password": engine.password_of(WRITER)}
    processes: list[Process] = []
    try:
        for role in ROLES:
            settings = bus.by_password(role)
            if role.startswith("check"):
                settings = settings.model_copy(update=rows)
            if role == "exporter":
                settings = settings.model_copy(update={"clickhouse": engine.url("longtake")})
            settings.state.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "infra.cli.worker", role]
            processes.append(Process(command, log=logs / f"{role}.log", cwd=settings.state, env=environment(settings)))
        yield
    finally:
        for process in processes:
            process.kill()


def until(seen: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.1)


def heard(settings: Settings, group: str) -> VideoFinished:
    """What a subscriber hears first."""
    config = {"group.id": group, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": settings.kafka, **client_access(settings), **config})
    consumer.subscribe([VideoFinished.topic])
    found: list[VideoFinished] = []

    def look() -> bool:
        record = consumer.poll(0.5)
        if record is not None and record.error() is None:
            event = decode(record.value() or b"")
            assert isinstance(event, VideoFinished)
            found.append(event)
        return bool(found)

    until(look, "a finished video")
    consumer.close()
    return found[0]


def sources(settings: Settings) -> Mapping[str, set[str]]:
    """Role -> topics it has written to, by the `ce_source` of what is there."""
    written: defaultdict[str, set[str]] = defaultdict(set)
    with Reader.from_beginning(settings, NAMES) as reader:
        for message in reader.to_end():
            headers = dict(message.headers)
            if message.topic == DEAD_LETTERS:
                written[(headers["dlq.group"] or b"").decode().removeprefix("longtake.")].add(message.topic)
            elif source := headers.get("ce_source"):
                written[source.decode().removeprefix("longtake/")].add(message.topic)
            elif message.topic == JobState.topic:
                written["director"].add(message.topic)
    return written


def committed(settings: Settings, group: str) -> set[str]:
    """Topics the group has read records of."""
    client = clients.admin(settings)  # kept: one that is dropped never answers
    found = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    return {place.topic for place in found.topic_partitions or [] if place.offset > 0}


def test_the_whole_line_works_under_its_acls_and_needs_all_of_them(
    bus: SecuredBus, engine: LocalClickHouse, tmp_path: Path
) -> None:
    viewer, producer = bus.by_password("viewer"), bus.by_password("producer")
    with line(bus, engine, tmp_path):
        publish(producer, [PROMPT], trace_root("harbour"))
        with Writer(producer) as writer:
            writer.publish([PromptSubmitted(job_id="empty")], trace_root("empty"))
        finished = heard(bus.by_password("subscriber"), "subscriber")
        publish(producer, [CancelRequested(job_id="harbour"), PLAY], trace_root("harbour"))
        until(lambda: _progress(viewer) is Stage.FINISHED, "insights says that the job has finished")
        _check_rows(engine)
        _check_rights_used(bus)
    assert (finished.job_id, finished.frames) == ("harbour", 48)
    for role in ROLES:
        said = (tmp_path / f"{role}.log").read_text().lower()
        assert "authoriz" not in said, (role, said)


def _progress(settings: Settings) -> Stage | None:
    with Reader.from_beginning(settings, [JobProgress.topic]) as reader:
        stages = [e.stage for e in map(event_of, reader.to_end()) if isinstance(e, JobProgress)]
    return stages[-1] if stages else None


def _check_rows(engine: LocalClickHouse) -> None:
    address = {"clickhouse": engine.url("longtake"), "clickhouse_reader_password": engine.password_of(READER)}
    reader = connect_reader(Settings(**address))
    until(lambda: reader.query("SELECT stage FROM jobs").result_rows == [("finished",)], "the job's row")
    assert reader.command("SELECT count() FROM frames") == 48


def _check_rights_used(bus: SecuredBus) -> None:
    """What the files allow is what was done, but for what happens on bad days only."""
    operator = bus.by_password("operator")
    put_back = {f"longtake.{n}.v1" for n in ("segments.requested", "pieces.requested", "assemblies.requested")}
    rare = {DEAD_LETTERS, *put_back}
    until(lambda: "longtake.control.v1" in committed(operator, "longtake.director"), "the cancellation was read")
    until(lambda: PlayReported.topic in committed(operator, "longtake.check-videos"), "the report of a player was read")
    written = sources(operator)
    for role in ROLES:
        said = {"write": [], **acls.read_role(role).topics}
        spare = rare | ({"longtake.pieces.v1", "longtake.videos.v1"} if role.startswith("check") else set[str]())
        spare |= {PromptSubmitted.topic, CancelRequested.topic} if role == "director" else set[str]()
        allowed = {name for name in said["write"] if not name.endswith("*")}
        assert allowed - spare <= written[role] <= allowed, role
        if role not in ("insights", "exporter", "sweep", "alerts", "tracer"):
            followed = (
                {JobState.topic, "longtake.releases.v1", "longtake.assets.v1"} if role == "director" else set[str]()
            )
            followed |= {"longtake.jobs.v1"} if role in ("generate", "stitch", "assemble") else set()
            followed |= {"longtake.baselines.v1"} if role == "check-pieces" else set()
            assert committed(operator, f"longtake.{role}") == set(said["read"]) - followed, role
    assert DEAD_LETTERS in written["director"]


@pytest.mark.parametrize("role", [role for role in acls.roles() if role != "operator"])
def test_a_role_reads_and_writes_what_its_file_says_and_nothing_else(bus: SecuredBus, role: str) -> None:
    said = acls.read_role(role).topics

    def allowed(operation: str) -> set[str]:
        return {
            n for n in NAMES if any(n == s or (s[-1] == "*" and n.startswith(s[:-1])) for s in said.get(operation, ()))
        }

    settings = bus.by_password(role)
    assert written_by(settings) == allowed("write")
    assert read_by(settings) == allowed("read")


def written_by(settings: Settings) -> set[str]:
    """Every topic that takes a record from this user."""
    producer = Producer({"bootstrap.servers": settings.kafka, **client_access(settings)})
    outcome: dict[str, KafkaError | None] = {}
    for name in NAMES:
        producer.produce(name, b"", b"probe", on_delivery=lambda e, _, name=name: outcome.update({name: e}))
    assert producer.flush(PATIENCE_S) == 0
    assert {error.code() for error in outcome.values() if error} <= DENIED
    return {name for name, error in outcome.items() if error is None}


def read_by(settings: Settings) -> set[str]:
    """Every topic that the broker says this user may read: to a reader it says nothing about those it may not know of."""
    client = clients.admin(settings)
    asked = client.describe_topics(TopicCollection(NAMES), include_authorized_operations=True)
    found: set[str] = set()
    for name, answer in asked.items():
        error = answer.exception(PATIENCE_S)
        if isinstance(error, KafkaException):
            assert error.args[0].code() in DENIED
        elif AclOperation.READ in (answer.result().authorized_operations or ()):
            found.add(name)
    return found


@pytest.mark.parametrize(
    ("role", "victim"), [("check-pieces", "director"), ("stitch", "assemble"), ("producer", "director")]
)
def test_a_role_cannot_pass_for_another(bus: SecuredBus, role: str, victim: str) -> None:
    settings, member = bus.by_password(role), Member(role=victim, topics=(VideoFinished.topic,))
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        clients.transactional_producer(settings, member).init_transactions(10)
    consumer = clients.worker_consumer(settings, member)
    consumer.subscribe([VideoFinished.topic])
    codes: set[int] = set()

    def refused() -> bool:
        record = consumer.poll(0.5)
        error = record.error() if record is not None else None
        codes.update([error.code()] if error else [])
        return bool(codes & DENIED)

    until(refused, "the group is refused")
    consumer.close()


def test_a_subscriber_joins_groups_of_its_own_name_only(bus: SecuredBus, longtake: Longtake) -> None:
    assert longtake(bus.by_certificate(ADMIN), "acls", "apply", "subscriber", "--user", "acme").code == 0
    acme = bus.by_certificate("acme")
    events.say(bus.by_certificate(ADMIN), events.finished())
    assert heard(acme, "acme.reports")
    client = clients.admin(acme)
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        client.describe_consumer_groups(["subscriber"])["subscriber"].result()


def test_the_operator_sets_up_and_the_acls_say_what_is_beyond_them(bus: SecuredBus, longtake: Longtake) -> None:
    operator = bus.by_password("operator")
    assert create_topics(operator) == []
    assert longtake(operator, "acls", "apply", "stitch").code == 0
    acls.apply(clients.admin(operator), acls.bindings("viewer", "stitch"))
    said = longtake(operator, "acls", "apply", "stitch").out
    assert "beyond that: allow User:stitch read topic longtake.*" in said
    refused = longtake(bus.by_password("viewer"), "acls", "apply", "viewer")
    assert refused.code == 3
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused.err
    for command in (("jobs",), ("topics",), ("dead-letters", "list")):
        assert longtake(bus.by_password("viewer"), *command).code == 0, command


def test_the_console_sees_all_it_shows_and_the_door_what_it_serves(bus: SecuredBus) -> None:
    settings = bus.by_password("console")
    publish(bus.by_password("producer"), [CancelRequested(job_id="shown")], trace_root("shown"))
    assert [r.name for r in records(settings, "shown", 0).found] == ["CancelRequested"]
    assert [group.name for group in groups(settings)] == [g.name for g in groups(bus.by_certificate(ADMIN))]
    assert read_releases(settings).all() == ()
    with View(bus.by_password("door")) as view:
        assert view.caught_up(30)
        assert view.problem == ""


def test_nobody_comes_in_without_a_certificate_of_the_authority_and_the_right_password(
    bus: SecuredBus, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger").identity("director")
    right = bus.by_password("director")
    assert clients.admin(right).list_topics(timeout=10).topics
    for wrong in (
        {"kafka_password": "guess"},
        {"kafka_user": "nobody"},
        {"kafka_certificate": None, "kafka_key": None},
        {"kafka_certificate": stranger.certificate, "kafka_key": stranger.key},
        {"kafka_ca": tmp_path / "stranger" / "ca.pem"},
        {"kafka": right.kafka.replace("127.0.0.1", "localhost")},
    ):
        given = {name: getattr(right, name) for name in Settings.model_fields} | wrong
        with pytest.raises(KafkaException):
            clients.admin(Settings(**given)).list_topics(timeout=2)


def test_the_release_of_a_broker_is_asked_through_tls(bus: SecuredBus) -> None:
    settings = bus.by_password("viewer")
    assert kafka_release(settings.kafka, tls_context(settings)) == "4.2"


def test_the_files_name_topics_that_there_are() -> None:
    for role in acls.roles():
        names = {name for names in acls.read_role(role).topics.values() for name in names}
        assert {name for name in names if name[-1] != "*"} <= set(NAMES), role
    assert set(ROLES) <= set(acls.roles())
    assert set(acls.read_role("director").topics["read"]) == {
        *INPUTS,
        JobState.topic,
        "longtake.releases.v1",
        "longtake.assets.v1",
    }
