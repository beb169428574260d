"""How far a group is, asked from outside it."""

import pytest
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition

from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.groups import GroupOffsets
from infra.settings import Settings
from schemas.records import CancelRequested

MEMBER = Member(role="test", topics=())
PLACES = [(CancelRequested.topic, 0), (CancelRequested.topic, 1)]
ANSWER_S = 10.0


def test_offsets_in_an_open_transaction_are_waited_for_or_not_yet_told_as_one_asks(bus_settings: Settings) -> None:
    consumer = clients.lone_consumer(bus_settings, MEMBER.group)
    consumer.commit(offsets=[TopicPartition(*PLACES[0], 3)], asynchronous=False)
    producer = clients.transactional_producer(bus_settings, MEMBER)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(*PLACES[0], 4)], consumer.consumer_group_metadata())
    with GroupOffsets(bus_settings) as before, GroupOffsets(bus_settings, IsolationLevel.READ_COMMITTED) as stable:
        assert before.of(MEMBER.group, PLACES, ANSWER_S) == {PLACES[0]: 3}
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            stable.of(MEMBER.group, PLACES, 1.0)
        producer.commit_transaction()
        assert stable.of(MEMBER.group, PLACES, ANSWER_S) == {PLACES[0]: 4}
        assert before.of("longtake.nobody", PLACES, ANSWER_S) == {}
    consumer.close()
