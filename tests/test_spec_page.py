"""The reference of spec keys is written from the models, and every example of the page about specs is a valid spec."""

import re
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY

from flows.operations.spec_keys import keys, meaning, page
from tasks.metrics.limits import faults
from tasks.pipeline.registry import checked

TEXT = (REPOSITORY / "docs" / "write-a-spec.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
SMALLEST: dict[str, Any] = yaml.safe_load(EXAMPLES[0])
"""The first example is a whole spec; the others are parts, which take the place of its keys."""


def test_the_reference_is_written_from_the_models() -> None:
    assert (REPOSITORY / "docs" / "audit-spec.md").read_text() == page(), "run `make docs`"


def test_every_key_has_a_meaning() -> None:
    declared = dict(keys())
    assert {"source.with.key.this", "methods.cst.k", "columns.recourse.step", "verdicts.limits.part"} <= set(declared)
    assert [path for path, field in declared.items() if not meaning(field)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.lstrip("# ").split("\n")[0][:40])
def test_examples_are_specs(example: str) -> None:
    part = yaml.safe_load(example)
    columns = {**SMALLEST["columns"], **part.get("columns", {})}
    checked({**SMALLEST, **part, "columns": columns}, "write-a-spec.md", (faults,))


def test_a_wrong_example_is_found() -> None:
    with pytest.raises(Exception, match="unknown key"):
        checked({**SMALLEST, "methods": {"cst": {"neighbours": 5}}}, "write-a-spec.md")
