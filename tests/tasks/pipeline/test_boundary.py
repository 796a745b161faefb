"""Boundary of a stage: each rule of a declaration is broken once and caught; rows are set aside; errors are told."""

from pathlib import Path

import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.errors import SuiteError
from schemas.table import Column, Table
from schemas.tables.applications import DECISIONS
from schemas.terms import ExitCode
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.stage import Produced, hold
from tasks.pipeline.validation import boundary, validate, validate_all
from tasks.scoring.stage import score

DECLARED = Table(
    "things",
    "For tests.",
    (
        Column("row_id", "string", "key"),
        Column("share", "double", "in [0, 1]", minimum=0.0, maximum=1.0),
        Column("kind", "string", "a code", codes=("a", "b")),
        Column("note", "string", "may be absent", nullable=True),
    ),
    key=("row_id",),
)

OPTIONAL = Table(
    "things",
    "For tests.",
    (
        Column("row_id", "string", "key"),
        Column("share", "double", "in [0, 1]", nullable=True, minimum=0.0, maximum=1.0),
        Column("kind", "string", "a code", nullable=True, codes=("a", "b")),
    ),
)
OPEN = pa.table(
    {
        "row_id": ["r0", "r1", "r2"],
        "share": pa.array([0.5, float("nan"), None]),
        "kind": pa.array(["a", None, "b"]),
    }
)


def table(**changed: object) -> pa.Table:
    columns = {
        "row_id": [f"r{i}" for i in range(10)],
        "share": [i / 10 for i in range(10)],
        "kind": ["a", "b"] * 5,
        "note": [None] * 10,
    }
    return DECLARED.build(**{**columns, **changed})


def broken(content: pa.Table) -> set[tuple[str, str | None]]:
    return {(o.expectation, o.column) for o in validate(content, DECLARED) if not o.success}


def replaced(name: str, at: int, value: object) -> pa.Table:
    values = table()[name].to_pylist()
    values[at] = value
    return pa.table({**{n: table()[n] for n in table().column_names}, name: pa.array(values)}).select(
        table().column_names
    )


BREAKS = {
    "null": ("share", None, ("expect_column_values_to_not_be_null", "share")),
    "range": ("share", 1.5, ("expect_column_values_to_be_between", "share")),
    "code": ("kind", "c", ("expect_column_values_to_be_in_set", "kind")),
    "key": ("row_id", "r0", ("expect_column_values_to_be_unique", "row_id")),
}


def test_a_good_table_keeps_its_declaration() -> None:
    assert broken(table()) == set()


@pytest.mark.parametrize("rule", BREAKS)
def test_each_rule_is_caught(rule: str) -> None:
    name, value, expected = BREAKS[rule]
    assert broken(replaced(name, 4, value)) == {expected}


def test_the_rows_to_blame_are_named() -> None:
    (outcome,) = [o for o in validate(replaced("share", 4, 7.0), DECLARED) if not o.success]
    assert outcome.row_ids == ("r4",)
    assert (outcome.unexpected, outcome.elements) == (1, 10)


def test_a_wrong_type_or_column_is_caught() -> None:
    wrong = table().set_column(1, "share", pa.array(["x"] * 10))
    assert broken(wrong) == {("expect_table_columns_to_have_types", "share")}
    assert broken(table().drop_columns(["note"])) == {("expect_table_columns_to_have_types", "note")}


def test_columns_out_of_order_are_caught() -> None:
    turned = table().select(["share", "row_id", "kind", "note"])
    assert {name for name, _ in broken(turned)} == {"expect_table_columns_to_match_ordered_list"}


@pytest.mark.parametrize(("rows", "ok"), [((10, 7, 3), True), ((10, 7, 2), False)])
def test_balance(rows: tuple[int, int, int], ok: bool) -> None:
    (outcome,) = validate_all([], rows)[-1]
    assert outcome.success is ok


def test_identifiers_shown_are_few_and_all_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "MOST_IDS", 2)
    (outcome,) = [o for o in validate(table(share=[7.0] * 10), DECLARED) if not o.success]
    assert (outcome.row_ids, outcome.unexpected) == (("r0", "r1"), 10)


def test_elements_of_expectations_are_the_values_held_against_them() -> None:
    found = {(o.expectation, o.column): o.elements for o in validate(OPEN, OPTIONAL)}
    assert found["expect_column_values_to_not_be_null", "row_id"] == 3
    assert found["expect_column_values_to_be_between", "share"] == 1
    assert found["expect_column_values_to_be_in_set", "kind"] == 2
    assert found["expect_table_columns_to_match_ordered_list", "row_id, share, kind"] == 3


def test_bad_rows_are_quarantined_once_each_with_the_first_rule_they_break(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """More bad rows than identifiers are shown: none of them may be published."""
    monkeypatch.setattr(boundary, "MOST_IDS", 3)
    frame = loans()
    frame.loc[10:29, "income"] = 1e6
    frame.loc[30:34, "income"] = -1.0
    frame.to_csv(tmp_path / "loans.csv", index=False)
    spec = spec_of(tmp_path, columns__income__bounds="[0, 100000]")
    produced = ingest.function(settings=ingest_settings(spec))
    kept, refusals, results, _ = hold(ingest, produced, 500)
    assert kept["applications"].num_rows == 475
    assert refusals.num_rows == 25
    assert max(kept["applications"]["income"].to_pylist()) <= 100000
    (row,) = [row for row in results.to_pylist() if row["quarantined"]]
    assert (row["column"], row["elements"], row["unexpected"]) == ("income", 500, 25)


def test_rows_that_cannot_be_named_stop_the_stage(tmp_path: Path) -> None:
    loans().to_csv(tmp_path / "loans.csv", index=False)
    produced = ingest.function(settings=ingest_settings(spec_of(tmp_path)))
    whole = produced.tables["applications"]
    nameless = pa.array([None, *whole["row_id"].to_pylist()[1:]], pa.string())
    tables = {**produced.tables, "applications": whole.set_column(0, whole.schema.field(0), nameless)}
    with pytest.raises(SuiteError, match="1 of 500 values"):
        hold(ingest, Produced(tables, produced.refusals, 500, produced.declared), 500)


def test_a_suite_that_cannot_be_mended_names_all_there_is_to_know() -> None:
    n = 5
    decisions = DECISIONS.build(
        row_id=list("abcde"),
        decision_maker=["model"] * n,
        favourable=[True] * n,
        outcome=[True] * n,
        score=[0.5, 1.5, 1.6, 1.7, 1.8],
        threshold=[0.5] * n,
        explained=[True] * n,
        fold=[0] * n,
    )
    tables = {**{t.name: t.empty() for t in score.writes}, "decisions": decisions}
    with pytest.raises(SuiteError) as error:
        hold(score, Produced(tables, rows_in=n), n)
    told = str(error.value)
    assert "stage score: table decisions" in told
    assert "column score: expect_column_values_to_be_between" in told
    assert "4 of 5 values; rows b, c, d\n" in told
    assert error.value.exit_code == ExitCode.DATA_QUALITY


def test_rows_that_vanish_stop_the_stage() -> None:
    tables = {t.name: t.empty() for t in score.writes}
    with pytest.raises(SuiteError, match="rows_out_and_refused"):
        hold(score, Produced(tables, rows_in=7), 7)
