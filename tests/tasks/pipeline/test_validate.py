"""From declaration to expectations: each rule of a declaration is broken once and caught, on small and large tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.errors import SuiteError
from schemas.table import Column, Table
from schemas.tables.applications import DECISIONS
from schemas.terms import ExitCode
from tasks.ingest.stage import ingest, settings_of
from tasks.pipeline import validation
from tasks.pipeline.stage import Produced, hold
from tasks.pipeline.validation import validate, validate_balance, witnesses
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
@pytest.mark.parametrize("size", ["whole", "by witnesses"])
def test_each_rule_is_caught(rule: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if size == "by witnesses":
        monkeypatch.setattr(validation, "FULL_ROWS", 5)
    name, value, expected = BREAKS[rule]
    assert broken(replaced(name, 4, value)) == {expected}


def test_the_rows_to_blame_are_named() -> None:
    (outcome,) = [o for o in validate(replaced("share", 4, 7.0), DECLARED) if not o.success]
    assert outcome.row_ids == ("r4",)
    assert (outcome.unexpected, outcome.elements) == (1, 10)


def test_a_wrong_type_or_column_is_caught() -> None:
    wrong = table().set_column(1, "share", pa.array(["x"] * 10))
    assert broken(wrong) == {("expect_column_pair_values_to_be_equal", "share")}
    assert broken(table().drop_columns(["note"])) == {("expect_column_pair_values_to_be_equal", "note")}


def test_columns_out_of_order_are_caught() -> None:
    turned = table().select(["share", "row_id", "kind", "note"])
    assert {name for name, _ in broken(turned)} == {"expect_table_columns_to_match_ordered_list"}


def test_witnesses_are_few() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    large = DECLARED.build(
        row_id=[str(i) for i in range(n)], share=rng.random(n), kind=rng.choice(["a", "b"], n), note=[None] * n
    )
    assert witnesses(large, DECLARED).num_rows < 20


@pytest.mark.parametrize(("rows", "ok"), [((10, 7, 3), True), ((10, 7, 2), False)])
def test_balance(rows: tuple[int, int, int], ok: bool) -> None:
    (outcome,) = validate_balance(*rows)
    assert outcome.success is ok


def test_a_large_table_is_quarantined_until_it_is_clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More bad rows than a large table shows at a time: none of them may be published."""
    monkeypatch.setattr(validation, "FULL_ROWS", 100)
    monkeypatch.setattr(validation, "_WITNESSES", 3)
    frame = loans()
    frame.loc[10:29, "income"] = 1e6
    frame.loc[30:34, "income"] = -1.0
    frame.to_csv(tmp_path / "loans.csv", index=False)
    spec = spec_of(tmp_path, columns__income__bounds="[0, 100000]")
    produced = ingest.function(settings=settings_of(spec))
    kept, refusals, _ = hold(ingest, produced, 500)
    assert kept["applications"].num_rows == 475
    assert refusals.num_rows == 25
    assert max(kept["applications"]["income"].to_pylist()) <= 100000


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
