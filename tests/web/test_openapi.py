"""The door keeps to its own description, whatever is sent: schemathesis makes the requests."""

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from infra.bus.writer import Writer
from infra.settings import Settings
from infra.web.app import new_app, new_parts
from infra.web.view import View

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def test_the_door_answers_as_it_is_described(bus_settings: Settings) -> None:
    with Writer(bus_settings) as writer, View(bus_settings) as view:
        assert view.caught_up(30)
        app = new_app(new_parts(bus_settings, view, writer))
        # Streams that never end, and pages for people, have tests of their own.
        schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app).exclude(path_regex="events$|/live/|/play$")
        operations = [result.ok() for result in schema.get_all_operations()]
        assert len(operations) >= 6
        for operation in operations:

            @given(case=operation.as_strategy())
            @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
            def answers(case: schemathesis.Case) -> None:
                case.call_and_validate(base_url="http://127.0.0.1", checks=CHECKS)

            answers()
