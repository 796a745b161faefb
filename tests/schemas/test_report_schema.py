"""The schema of report.json is that of its models."""

import json

from conftest import REPOSITORY
from jsonschema import Draft202012Validator

from schemas.report import SCHEMA_VERSION, Report, schema, schema_text

FILE = REPOSITORY / "schemas" / "report.schema.json"


def test_the_schema_is_current() -> None:
    assert FILE.read_text() == schema_text(), "run `make docs`"


def test_it_is_a_schema_and_names_its_version() -> None:
    Draft202012Validator.check_schema(schema())
    assert json.loads(FILE.read_text())["properties"]["schema_version"]["const"] == SCHEMA_VERSION


def test_every_part_refuses_what_it_does_not_name() -> None:
    made = schema()
    assert all(
        part["additionalProperties"] is False
        for part in (made, *(p for p in made["$defs"].values() if "properties" in p))
    )


def test_it_has_what_the_specification_of_the_report_names() -> None:
    wanted = "schema_version run title source digests disclosure headline questions figures groups checks change next"
    wanted += " cannot signatures pages theories warnings"
    assert set(wanted.split()) <= set(Report.model_fields)
    assert not {"measures", "tables", "facts"} & set(Report.model_fields)
