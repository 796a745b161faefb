"""Tables as people export them, with known answers: the door finds their columns and their rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED

from schemas.terms import Refusal
from tasks.ingest.sources import files
from tasks.ingest.sources.door import describe

FOLDER = "corpus/intake/tables"
ANSWERS = sorted((SHARED / FOLDER).glob("*.expected.json"))
pytestmark = pytest.mark.data(FOLDER)


def columns_in(answer: dict[str, Any]) -> set[str]:
    """The columns that an answer names, but for those of a second file."""
    named = {answer["decision"]["column"], *answer["numbers"], *answer["categories"], *answer["out"]}
    return named | {protected["column"] for protected in answer["protected"] if "joined" not in answer}


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.name.partition(".")[0])
def test_a_table_is_found_in_its_file(path: Path) -> None:
    answer = json.loads(path.read_text())
    found = describe(path.with_name(answer["file"]))
    raw = files.read(found.source, found.columns)
    if not answer.get("hmda"):  # its names are those of a layout
        assert columns_in(answer) <= set(found.columns)
    assert found.rows == raw.table.num_rows == answer["rows_in"]
    refused = [row.reason for row in raw.unread]
    assert refused == [Refusal.FOOTER] * answer.get("refused", {}).get("footer", 0)
    rows = zip(*(column.to_pylist() for column in raw.table.columns), strict=True)
    assert all(any(cells) for cells in rows)
