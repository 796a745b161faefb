"""Tables in fourteen languages and forms: what is drafted without help is what they were made of."""

from pathlib import Path

import foreign_tables as tables
import numpy as np
import pytest

from flows.cli.draft.drafting import Draft, drafted
from flows.cli.draft.questions import lines, questions
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.vocabulary import plain

MOST_LINES = 12


def folded(rows: dict[str, int]) -> dict[str, int]:
    return {plain(value): n for value, n in rows.items()}


@pytest.mark.parametrize("make", tables.MAKERS, ids=lambda make: make.__name__)
def test_a_table_is_drafted_rightly_without_help(make, tmp_path: Path) -> None:
    path, truth = make().write(tmp_path)
    draft = drafted(read_file(File(path)))
    assert draft.decision_column == truth.decision
    for side, rows in truth.sides.items():
        assert folded(draft.of_side(side)) == folded(rows)
    people_are(draft, truth)
    columns_are(draft, truth)
    if truth.year:
        assert (draft.year.value, draft.year.why) == (truth.year, "")
    assert len(lines(questions(draft))) <= MOST_LINES


def people_are(draft: Draft, truth: tables.Truth) -> None:
    found = {attribute.column: attribute for attribute in draft.attributes}
    assert set(found) == set(truth.people)
    for name, groups in truth.people.items():
        assert folded(found[name].rows) == folded(groups)
        best = max(found[name].favourable, key=found[name].favourable.__getitem__)
        assert plain(found[name].reference) == plain(truth.reference.get(name, best))


def columns_are(draft: Draft, truth: tables.Truth) -> None:
    entries = {entry.name: entry for entry in draft.entries}
    for name, total in truth.numbers.items():
        assert (entries[name].type, entries[name].excluded) == ("continuous", False)
        numbers = draft.table.columns[name].numbers
        assert np.isfinite(numbers).all()
        assert numbers.sum() == pytest.approx(total, rel=1e-9)
    for name, values in truth.categories.items():
        assert not entries[name].excluded
        assert len(draft.table.columns[name].values) == values
    assert [name for name in truth.left if not entries[name].excluded] == []
