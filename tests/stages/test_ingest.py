"""Ingest: every row of the source comes out as an application or as a refusal with its reason."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from conftest import loans, spec_of

from schemas.applications import APPLICATIONS, MEMBERSHIPS
from schemas.errors import DataQualityError, SpecError
from tasks._stage import Produced, hold
from tasks.ingest import ingest, settings_of
from tasks.sources.cells import canonical


def ingested(place: Path, **overrides: str) -> Produced:
    return ingest.function(settings=settings_of(spec_of(place, **overrides)))


def held(place: Path, **overrides: str):  # type: ignore[no-untyped-def]
    produced = ingested(place, **overrides)
    return hold(ingest, produced, produced.rows_in or 0)


def reasons(produced: Produced) -> Counter:  # type: ignore[type-arg]
    frame = produced.refusals.to_pandas()
    return Counter(zip(frame["reason"], frame["column"].fillna(""), strict=True))


def write(place: Path, frame: pd.DataFrame, **how: object) -> None:
    frame.to_csv(place / "loans.csv", index=False, **how)  # type: ignore[call-overload]


def test_every_row_is_an_application_or_a_refusal(place: Path) -> None:
    frame = loans().astype(object)
    frame.loc[0, "income"] = "a lot"
    frame.loc[1, "income"] = "inf"
    frame.loc[2, "income"] = "NaN"
    frame.loc[3, "amount"] = "NA"
    frame.loc[4, "amount"] = "Exempt"
    frame.loc[5, "history"] = "splendid"
    frame.loc[6, "approved"] = "withdrawn"
    frame.loc[7, "approved"] = ""
    frame.loc[[8, 9], "id"] = "L0010"  # three rows now share this id
    frame.loc[11, "id"] = ""
    write(place, frame)
    produced = ingested(place)
    assert reasons(produced) == {
        ("not_a_number", "income"): 1,
        ("not_finite", "income"): 2,
        ("unknown_category", "history"): 1,
        ("decision_not_audited", "approved"): 1,
        ("missing_decision", "approved"): 1,
        ("duplicate_row_id", "id"): 3,
        ("missing_row_id", "id"): 1,
    }
    applications = produced.tables[APPLICATIONS.name]
    assert produced.rows_in == 500 == applications.num_rows + produced.refusals.num_rows
    exempt = applications.to_pandas().set_index("row_id")["exempt"]
    assert exempt["L0004"] == "amount"  # kept here, refused as exempt where a covariate is needed
    assert pd.isna(exempt["L0003"])


def test_missing_protected_value_is_a_group(place: Path) -> None:
    members = ingested(place).tables[MEMBERSHIPS.name].to_pandas()
    assert set(members["group"]) == {"white", "Black", "(missing)"}
    assert len(members) == 500


def test_a_value_that_no_group_lists_is_a_group_too(place: Path) -> None:
    frame = loans()
    frame.loc[:9, "race"] = "x"
    write(place, frame)
    members = ingested(place).tables[MEMBERSHIPS.name].to_pandas()
    assert (members["group"] == "(other)").sum() == 10


def test_crossed_columns_make_one_group_per_pair(place: Path) -> None:
    text_of = {
        "protected.0.columns": "[race, purpose]",
        "protected.0.groups": "{}",
        "protected.0.reference": "w and buy",
    }
    produced = ingested(place, **{k.replace(".", "__"): v for k, v in text_of.items()})
    groups = set(produced.tables[MEMBERSHIPS.name].to_pandas()["group"])
    assert groups == {f"{r} and {p}" for r in ("w", "b", "(missing)") for p in ("buy", "refinance")}


@pytest.mark.parametrize(
    ("how", "override"),
    [
        ({"encoding": "utf-8-sig"}, {}),
        ({"lineterminator": "\r\n"}, {}),
        ({"quoting": 1}, {}),
        ({"sep": "|"}, {"source__delimiter": "'|'"}),
    ],
    ids=["bom", "crlf", "quotes", "pipe"],
)
def test_dialects_read_the_same(place: Path, how: dict[str, object], override: dict[str, str]) -> None:
    plain = ingested(place).tables[APPLICATIONS.name]
    write(place, loans(), **how)
    assert ingested(place, **override).tables[APPLICATIONS.name].equals(plain)


def test_latin_1_is_read_when_declared_and_named_when_not(place: Path) -> None:
    frame = loans()
    frame["purpose"] = frame["purpose"].replace("buy", "häuslich")
    write(place, frame, encoding="latin-1")
    assert "häuslich" in ingested(place, source__encoding="latin-1").tables[APPLICATIONS.name]["purpose"].to_pylist()
    with pytest.raises(DataQualityError, match=r"not utf-8 text; set source\.encoding: latin-1"):
        ingested(place)


def test_a_line_with_too_many_cells_is_refused_by_its_number(place: Path) -> None:
    lines = (place / "loans.csv").read_text().splitlines()
    lines[3] += ",surplus"
    (place / "loans.csv").write_text("\n".join(lines) + "\n")
    produced = ingested(place)
    refusals = produced.refusals.to_pandas()
    assert refusals[["source_row", "reason"]].to_numpy().tolist() == [[3, "malformed_line"]]
    assert produced.tables[APPLICATIONS.name]["source_row"].to_pylist()[:4] == [1, 2, 4, 5]
    held(place)


def test_a_value_out_of_bounds_is_quarantined_and_the_rest_kept(place: Path) -> None:
    frame = loans()
    frame.loc[3, "income"] = 1e6
    write(place, frame)
    kept, refusals, results = held(place, columns__income__bounds="[0, 100000]")
    (row,) = refusals.to_pylist()
    assert (row["row_id"], row["reason"], row["column"]) == ("L0003", "failed_expectation", "income")
    assert kept[APPLICATIONS.name].num_rows == 499
    assert any(r["quarantined"] for r in results.to_pylist())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: f.assign(approved="yes"), "all 500 usable decisions are favourable"),
        (lambda f: f.assign(race="w"), "no row belongs to group 'Black'"),
        (lambda f: f.assign(approved="maybe"), "holds any of"),
        (lambda f: f.assign(income="a lot"), "no row of .* can be used"),
    ],
    ids=["empty", "one decision", "one group of two listed", "no decision", "no row"],
)
def test_unusable_tables_are_named(place: Path, change, match: str) -> None:  # type: ignore[no-untyped-def]
    write(place, change(loans()))
    with pytest.raises((DataQualityError, SpecError), match=match):
        ingested(place)


def test_one_group_only_is_nothing_to_compare(place: Path) -> None:
    write(place, loans().assign(race="w"))
    with pytest.raises(DataQualityError, match="has one group only"):
        ingested(place, protected__0__groups="{white: [w]}")


@pytest.mark.parametrize(
    ("cell", "code"), [("5.0", "5"), (" 21.00 ", "21"), ("5.10", "5.10"), ("-3.0", "-3"), ("<20%", "<20%"), (None, "")]
)
def test_canonical(cell: str | None, code: str) -> None:
    assert canonical(cell) == code
