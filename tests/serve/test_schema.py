"""The OpenAPI schema tells the truth: schemathesis calls every operation as it is described."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ducos.serve import Settings, create_app
from tests.serve.server import RunningServer

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


SCHEMA = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
OPERATIONS = {each.ok().label: each.ok() for each in SCHEMA.get_all_operations()}


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_operation_does_what_it_says(server: RunningServer, label: str) -> None:
    @settings(max_examples=8, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[label].as_strategy())
    def calls(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=server.url, checks=CHECKS)

    calls()


def test_every_operation_has_words_and_problems(server: RunningServer) -> None:
    content = server.http.get("/openapi.json").json()
    operations = [
        (path, method, operation)
        for path, methods in content["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) >= 13
    for path, method, operation in operations:
        assert operation["summary"], (path, method)
        assert {"200", "202"} & operation["responses"].keys()
        assert "421" in operation["responses"], (path, method)
    form = json.dumps(content["components"]["schemas"])
    assert "tof" in form  # the examples of options
