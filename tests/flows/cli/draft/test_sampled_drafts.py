"""Tables of more rows than are looked at: a sample of rows, and every value of decisions, groups and categories."""

from pathlib import Path

import pytest

from flows.cli.draft import reading
from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.questions import lines, questions
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.spec_text import text

ROWS, LOOKED_AT = 3_000, 300
RARE = {"decision": "Refused by the board", "race": "Samoan", "purpose": "boat", "age": "130"}


def large(place: Path) -> Path:
    """A table with values that stand in one row, far from its start, and with a foot."""
    rows = []
    for i in range(ROWS):
        cells = {
            "id": f"A{i:05}",
            "decision": "approved" if i % 3 else "denied",
            "race": "White" if i % 2 else "Black",
            "age": str(20 + i % 60),
            "purpose": "car" if i % 5 else "home",
            "income": str(20_000 + 7 * i),
        }
        rows.append(",".join({**cells, **(RARE if i == ROWS - 9 else {})}.values()))
    rows[40] += ",one cell too many"
    file = place / "large.csv"
    file.write_text("\n".join(["id,decision,race,age,purpose,income", *rows, "Total,,,,,1"]) + "\n")
    return file


@pytest.fixture
def draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Draft:
    monkeypatch.setattr(reading, "MOST_ROWS", LOOKED_AT)
    monkeypatch.setattr(reading, "_COUNTED_TOGETHER", 500)
    monkeypatch.setattr(reading, "_MOST_TEXTS", 100)
    return drafted(read_file(File(large(tmp_path))))


def test_rare_values_that_a_sample_misses_are_drafted_with_their_rows(draft: Draft) -> None:
    table = draft.table
    assert (table.rows, table.file_rows, table.refused) == (LOOKED_AT, ROWS - 1, {"malformed_line": 1, "footer": 1})
    for name, value in RARE.items():
        column = table.columns[name]
        assert column.counts[value] == 1
        assert column.texts.index(value) not in column.codes  # the sample itself has none
    assert draft.of_side("unfavourable") == {"denied": 999, RARE["decision"]: 1}
    assert sum(draft.of_side("favourable").values()) == ROWS - 1 - 1000
    groups = {attribute.column: attribute for attribute in draft.attributes}
    assert groups["race"].rows["Samoan"] == 1
    assert "Samoan" in groups["race"].reported_only
    assert sum(groups["age"].rows.values()) + groups["age"].missing == ROWS - 1
    assert table.columns["purpose"].values["boat"] == 1
    assert not table.columns["income"].exact  # a column of many numbers is of the sample alone


def test_the_draft_and_its_questions_say_that_they_are_from_a_sample(draft: Draft) -> None:
    assert f"({ROWS - 1:,} rows, 6 columns, drafted from a sample of {LOOKED_AT})" in text(draft).splitlines()[0]
    assert f"drafted from a sample of {LOOKED_AT} of its {ROWS - 1:,} rows" in " ".join(draft.table.notes)
    assert "favourable in the sample: " in " ".join(lines(questions(draft)))


@pytest.mark.parametrize("limits", [{"MOST_ROWS": LOOKED_AT}, {"MOST_CELLS": 6 * LOOKED_AT, "LEAST_ROWS": 1}])
def test_a_sample_is_the_same_each_time(
    limits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(reading, name, value)
    file = large(tmp_path)
    first, second = (read_file(File(file)).columns["id"] for _ in range(2))
    assert [first.texts[at] for at in first.codes] == [second.texts[at] for at in second.codes]
    assert len(first.codes) == LOOKED_AT


def test_tables_of_fewer_rows_are_read_whole(tmp_path: Path) -> None:
    table = read_file(File(large(tmp_path)))
    assert (table.rows, table.file_rows) == (ROWS - 1, 0)
    assert not any(column.exact for column in table.columns.values())
