"""The one way to write: outputs and input offsets, together or not at all."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from infra.bus.errors import AbortedError, TransactionError
from infra.bus.message import Partition
from infra.bus.outputs import Output
from infra.metrics import meters
from schemas.topics import DEAD_LETTERS

INIT_S = 60.0
_ABORTS = 10
_ABORT_PAUSE_S = 0.1
_RETRY_PAUSE_S = 0.005
_NO_TEXTS: Mapping[Partition, str] = MappingProxyType({})

log = logging.getLogger(__name__)
Group = object
"""What `Consumer.consumer_group_metadata()` gives: member and generation, by which the broker fences."""


class Transactions:
    """Owns the transactional producer of a slot. `limit_s` bounds one commit: less than the watchdog's time."""

    def __init__(self, producer: Producer, limit_s: float) -> None:
        """Fences the slot's former process and settles its transaction. Raises: TransactionError."""
        self._producer = producer
        self._limit_s = limit_s
        self._aborts = 0
        self._deadline = time.monotonic() + INIT_S
        self._settle("init_transactions", producer.init_transactions)

    def commit(
        self,
        outputs: Sequence[Output],
        offsets: Mapping[Partition, int],
        group: Group,
        texts: Mapping[Partition, str] = _NO_TEXTS,
    ) -> None:
        """Write `outputs` and take the inputs as read up to `offsets` (the next ones to read), in five steps.

        1. begin; 2. produce; 3. flush, which makes the offsets 20 times faster; 4. offsets, fenced by the generation of
        `group`; 5. commit. Open for milliseconds. `texts` are kept beside the offsets; one that was there before goes.

        Raises: AbortedError (rewind, then try again), TransactionError (end the process).
        """
        self._deadline = time.monotonic() + self._limit_s
        positions = [TopicPartition(*place, offset, texts.get(place, "")) for place, offset in offsets.items()]
        try:
            self._step("begin_transaction", lambda _: self._producer.begin_transaction())
            for output in outputs:
                self._step(f"produce to {output.topic}", lambda _, output=output: self._produce(output))
            self._step("flush", self._flush)
            self._step("send_offsets", lambda s: self._producer.send_offsets_to_transaction(positions, group, s))
            self._step("commit_transaction", self._producer.commit_transaction)
        except _MustAbortError as error:
            meters.ABORTED.inc()
            self._abort(error)
        self._aborts = 0
        meters.COMMIT_S.observe(self._limit_s - self._left_s())
        for output in outputs:
            meters.PRODUCED.labels(output.topic).inc()
            if output.topic == DEAD_LETTERS:
                reasons = dict(output.headers)
                meters.DEAD_LETTERS.labels(_text(reasons.get("dlq.topic")), _text(reasons.get("dlq.rule"))).inc()

    def serve(self) -> None:
        """Let the client report: once per turn of the loop."""
        self._producer.poll(0)

    def _produce(self, output: Output) -> None:
        self._producer.produce(output.topic, output.value, output.key, output.partition, headers=list(output.headers))

    def _flush(self, timeout_s: float) -> None:
        left = self._producer.flush(timeout_s)
        if left:
            raise TransactionError(f"flush: the broker did not take {left} records in {self._limit_s:.0f} s")

    def _abort(self, cause: "_MustAbortError") -> None:
        self._settle("abort_transaction", self._producer.abort_transaction)
        self._aborts += 1
        log.warning("transaction aborted (%d in a row): %s", self._aborts, cause)
        if self._aborts >= _ABORTS:
            raise TransactionError(f"{self._aborts} transactions in a row were aborted, the last one because: {cause}")
        time.sleep(_ABORT_PAUSE_S * self._aborts)
        raise AbortedError(str(cause))

    def _settle(self, name: str, call: Callable[[float], None]) -> None:
        """A step that cannot itself be aborted."""
        try:
            self._step(name, call)
        except _MustAbortError as error:
            raise TransactionError(str(error)) from error

    def _step(self, name: str, call: Callable[[float], None]) -> None:
        while True:
            try:
                return call(self._left_s())
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.retriable() and not cause.fatal() and self._left_s() > 0:
                    time.sleep(_RETRY_PAUSE_S)
                    continue
                if cause.txn_requires_abort() and not cause.fatal():
                    raise _MustAbortError(f"{name}: {cause.str()}") from error
                raise TransactionError(
                    f"{name}: {cause.str()} [{cause.name()}]; a restart in this slot settles it"
                ) from error

    def _left_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


class _MustAbortError(Exception):
    """The transaction cannot commit, but the producer lives."""
