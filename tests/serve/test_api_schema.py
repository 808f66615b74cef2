"""Schemathesis against the OpenAPI document: no 5xx, and every answer is as documented."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from support.hypothesis_profile import examples
from support.survey import OCCUPATIONS, OUTDOORS, STRENGTH
from support.web_client import WebClient, open_app, released

DOCUMENT = "/api/v2/openapi.json"
CHECKED = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
]
PATHS = {
    "/api/v2/tables": ["get"],
    "/api/v2/tables/{id}": ["get"],
    "/api/v2/tables/{id}/metadata": ["get"],
    "/api/v2/tables/{id}/data": ["get", "post"],
    "/api/v2/codelists/{id}": ["get"],
    "/api/v2/config": ["get"],
    "/health": ["get"],
}
VALUES = {"occupation": [*OCCUPATIONS], "major": ["11", "13"], "strength": STRENGTH, "outdoors": OUTDOORS}
Picked = dict[str, list[str]]
PICKED = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.lists(st.sampled_from([*codes, "none"]), max_size=3) for name, codes in VALUES.items()},
        "outdoors": st.just(["*"]),
    },
)
FORMS = ["json-stat2", "csv", "xlsx", "parquet", "sdmx-csv"]
EXAMPLES = examples(60, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def api(folder: Path) -> Any:
    return schemathesis.openapi.from_asgi(DOCUMENT, open_app(folder))


OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]
EVERY = pytest.mark.parametrize(("path", "method"), OPERATIONS)


@pytest.mark.slow
@EVERY
def test_valid_and_invalid_requests_are_answered_as_documented(api: Any, path: str, method: str) -> None:
    operation = api[path][method.upper()]
    for mode in GenerationMode if path != "/health" else [GenerationMode.POSITIVE]:  # nothing can be wrong there

        @EXAMPLES
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=CHECKED)

        run()


@pytest.mark.slow
@EVERY
def test_requests_for_existing_tables_and_codes_are_answered_as_documented(api: Any, path: str, method: str) -> None:
    seen: Counter[int] = Counter()

    @EXAMPLES
    @given(case=api[path][method.upper()].as_strategy(), shown=PICKED, limits=PICKED, form=st.sampled_from(FORMS))
    def run(case: schemathesis.Case, shown: Picked, limits: Picked, form: str) -> None:
        if "id" in case.path_parameters:
            case.path_parameters["id"] = "cube_major" if "codelists" in case.path else "cube"
        if path.endswith("/data"):
            case.query = {"outputFormat": form}
            if method == "get":
                case.query |= {f"valueCodes[{name}]": ",".join(codes) for name, codes in shown.items()}
                case.query |= {f"where[{name}]": ",".join(codes) for name, codes in limits.items()}
            else:
                case.body = {"selection": _listed(shown), "where": _listed(limits)}
        seen[case.call_and_validate(checks=CHECKED).status_code] += 1

    run()
    assert seen[200] >= 10
    assert not path.endswith("/data") or seen[400] >= 5


def _listed(picked: Picked) -> list[dict[str, object]]:
    return [{"variableCode": name, "valueCodes": codes} for name, codes in picked.items()]


def test_the_document_is_complete(folder: Path) -> None:
    web = WebClient(open_app(folder))
    document = web.get(DOCUMENT).json()
    assert {path: list(methods) for path, methods in document["paths"].items()} == PATHS
    data = document["paths"]["/api/v2/tables/{id}/data"]["get"]
    assert {p["name"] for p in data["parameters"]} == {
        "id",
        "valueCodes",
        "where",
        "codelist",
        "outputValues",
        "heading",
        "stub",
        "outputFormatParams",
        "outputFormat",
        "lang",
    }
    assert {"application/json", "text/csv", "application/vnd.apache.parquet"} <= set(
        data["responses"]["200"]["content"]
    )
    for status in ("400", "403", "404", "429", "503"):
        assert "application/problem+json" in data["responses"][status]["content"]
    assert "422" not in data["responses"]
    text = str(document)
    for name in ("HTTPValidationError", "ValidationError"):
        assert name not in text
    web.close()


def test_a_wrong_document_would_be_detected(folder: Path) -> None:
    """The checks above can fail."""
    app = open_app(folder)
    web = WebClient(app)
    document = web.get(DOCUMENT).json()
    web.close()
    document["components"]["schemas"]["ConfigResponse"]["properties"]["apiVersion"] = {"type": "integer"}
    del document["paths"]["/api/v2/tables/{id}"]["get"]["responses"]["404"]
    lying = schemathesis.openapi.from_dict(document)
    lying.app = app
    for path, values in (("/api/v2/config", {}), ("/api/v2/tables/{id}", {"id": "none"})):
        case = lying[path]["GET"].Case(path_parameters=values)
        with pytest.raises(FailureGroup):
            case.call_and_validate(checks=CHECKED)
