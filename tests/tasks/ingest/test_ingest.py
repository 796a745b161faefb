"""Ingest: every row of the source comes out as an application or as a refusal with its reason."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import loans, spec_of
from hypothesis import given
from hypothesis import strategies as st
from pandas_ingest import Refused, keep_only

from schemas.audit.source import Keep, Source
from schemas.bounds import canonical
from schemas.errors import DataQualityError, SpecError
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from tasks.ingest.registry import check_columns
from tasks.ingest.sources import files as sources_files
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.stage import Produced, hold


def ingested(place: Path, **overrides: str) -> Produced:
    return ingest.function(settings=ingest_settings(spec_of(place, **overrides)))


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


def test_values_of_a_spec_are_trimmed_as_cells_are(place: Path) -> None:
    blanks = {
        "protected__0__groups": "{white: ['w '], Black: [' b\u00a0']}",
        "decision__favourable": "[' yes']",
        "decision__unfavourable": "['no ']",
    }
    plain, trimmed = ingested(place), ingested(place, **blanks)
    for table in (APPLICATIONS.name, MEMBERSHIPS.name):
        assert trimmed.tables[table].equals(plain.tables[table])
    assert "(other)" not in trimmed.tables[MEMBERSHIPS.name]["group"].to_pylist()


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("protected__0__groups", "{white: [w], Black: [b, ' w']}", r"\['w'\] are in more than one group"),
        ("source__derive", "{c: {column: race, values: {x: [w], 'x ': [b]}}}", r"\['x'\] are repeated"),
        ("source__derive", "{c: {column: race, values: {x: [w], y: ['w ']}}}", r"\['w'\] have more than one value"),
    ],
    ids=["groups", "new values", "values"],
)
def test_values_that_are_equal_but_for_blanks_stand_in_one_place(place: Path, key: str, value: str, match: str) -> None:
    with pytest.raises(SpecError, match=match):
        spec_of(place, **{key: value})
    assert spec_of(place, protected__0__groups="{white: [w, 'w '], Black: [b]}").protected[0].groups["white"]


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
    with pytest.raises(DataQualityError, match=r"not utf-8 text; set source\.encoding: cp1252"):
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
    kept, refusals, results, _ = held(place, columns__income__bounds="[0, 100000]")
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


def test_files_without_a_header_are_read_one_after_the_other(place: Path) -> None:
    lines = (place / "loans.csv").read_text().splitlines()
    names, rows = lines[0], lines[1:]
    rows[302] += ",surplus"
    (place / "first.csv").write_text("\n".join(["a title", *rows[:300]]) + "\n\n")
    (place / "second.csv").write_text("\n".join(["another", "# no row, but a note", *rows[300:]]))
    produced = ingested(
        place,
        source__path=f"[{place / 'first.csv'}, {place / 'second.csv'}]",
        source__header=f"[{names}]",
        source__skip="1",
        source__comment="'#'",
    )
    applications = produced.tables[APPLICATIONS.name]
    numbers = [i for i in range(1, 501) if i != 303]
    assert applications["source_row"].to_pylist() == numbers
    assert applications["row_id"].to_pylist() == [f"L{i - 1:04d}" for i in numbers]
    assert produced.refusals.select(["source_row", "reason"]).to_pylist() == [
        {"source_row": 303, "reason": "malformed_line"}
    ]
    assert produced.rows_in == 500


LINES = st.lists(st.sampled_from(["a,b", "a,b", "a", "a,b,c", "# note", "#a,b", ""]), max_size=12)


@given(st.lists(LINES, min_size=1, max_size=3))
def test_rows_keep_their_numbers_whatever_lies_between_them(files) -> None:  # type: ignore[no-untyped-def]
    number, good, broken = 0, [], []
    for line in (line for lines in files for line in lines):
        if line and not line.startswith("#"):
            number += 1
            (good if line.count(",") == 1 else broken).append(number)
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place) / f"{i}.csv" for i in range(len(files))]
        for path, lines in zip(paths, files, strict=True):
            path.write_text("\n".join(["x,y", *lines]) + "\n")
        raw = sources_files.read(Source(kind="csv", path=tuple(map(str, paths)), comment="#"), ["y", "x"])
    assert (raw.source_row, [each.row for each in raw.unread]) == (good, broken)
    assert raw.table.to_pydict() == {"y": ["b"] * len(good), "x": ["a"] * len(good)}


def test_files_of_other_columns_are_not_one_source(place: Path) -> None:
    loans().rename(columns={"income": "wage"}).to_csv(place / "other.csv", index=False)
    both = f"[{place / 'loans.csv'}, {place / 'other.csv'}]"
    with pytest.raises(DataQualityError, match=r"other\.csv has other columns than loans\.csv"):
        check_columns(spec_of(place, source__path=both))


def test_a_header_of_another_length_is_named(place: Path) -> None:
    with pytest.raises(DataQualityError, match=r"has 7 columns in its first row and source\.header names 2"):
        check_columns(spec_of(place, source__header="[id, race]"))


def test_the_digest_of_several_files_hangs_on_each_and_on_their_order(place: Path) -> None:
    loans(seed=8).to_csv(place / "other.csv", index=False)
    one, other = str(place / "loans.csv"), str(place / "other.csv")
    paths = (f"[{one}]", f"[{other}]", f"[{one}, {other}]", f"[{other}, {one}]")
    digests = [ingest_settings(spec_of(place, source__path=path)).source_sha256 for path in paths]
    assert len(set(digests)) == 4
    assert digests[0] == ingest_settings(spec_of(place)).source_sha256


def test_rows_are_kept_by_list_range_and_presence(place: Path) -> None:
    frame = loans().astype(object)
    frame.loc[0, "amount"] = "unknown"
    write(place, frame)
    keep = "{history: [fair, good], amount: {minimum: 100, maximum: 150}, race: present}"
    produced = ingested(place, source__keep=keep, protected__0__groups="{}", protected__0__reference="w")
    amount = pd.to_numeric(frame["amount"], errors="coerce")
    wanted = frame["history"].isin(["fair", "good"]) & (amount >= 100) & (amount <= 150) & (frame["race"] != "")
    assert produced.tables[APPLICATIONS.name]["row_id"].to_pylist() == frame.loc[wanted, "id"].tolist()
    assert set(produced.refusals["reason"].to_pylist()) == {"filtered"}
    assert produced.refusals.num_rows == 500 - wanted.sum()


def test_a_range_may_be_open_and_holds_its_ends() -> None:
    frame = pd.DataFrame({"x": ["1", "2", "2.5", "", "word", "-7"]}, dtype=object)
    for rule, kept in (({"minimum": 2}, [1, 2]), ({"maximum": 2}, [0, 1, 5]), ({"minimum": 1, "maximum": 2}, [0, 1])):
        refused = Refused(len(frame))
        keep_only(frame, frame == "", {"x": Keep.model_validate(rule)}, refused)
        assert [i for i, reason in enumerate(refused.reason) if not reason] == kept


DERIVED = {
    "source__derive": "{colour: {column: race, values: {light: [w], dark: [b]}}}",
    "protected__0__columns": "[colour]",
    "protected__0__groups": "{}",
    "protected__0__reference": "light",
}


def test_a_derived_column_serves_as_any_other(place: Path) -> None:
    produced = ingested(place, **DERIVED, columns__colour="{type: nominal}")
    applications = produced.tables[APPLICATIONS.name].to_pandas()
    expected = loans().set_index("id")["race"].map({"w": "light", "b": "dark", "": None})
    assert applications.set_index("row_id")["colour"].fillna("").equals(expected.rename("colour").fillna(""))
    members = produced.tables[MEMBERSHIPS.name].to_pandas()
    assert set(members["group"]) == {"light", "dark", "(missing)"}
    assert produced.refusals.num_rows == 0


def test_a_value_that_the_mapping_does_not_list_refuses_its_row(place: Path) -> None:
    frame = loans()
    frame.loc[:4, "race"] = "x"
    frame.loc[0, "history"] = "bad"
    frame.loc[1:, "history"] = "good"
    write(place, frame)
    produced = ingested(place, **DERIVED, source__keep="{history: [good]}")
    assert reasons(produced) == {("filtered", "history"): 1, ("unknown_category", "colour"): 4}
    assert produced.tables[MEMBERSHIPS.name].num_rows == 500 == produced.rows_in


def test_a_decision_of_two_columns_is_made_of_the_rows_that_each_marks(place: Path) -> None:
    frame = loans()
    approved = frame["approved"].astype(str).isin(["1", "True", "yes"])
    frame["approved_on"] = np.where(approved, "2023-04-01", "")
    frame["declined_on"] = np.where(approved, " ", "2023-05-01")
    frame.loc[0, ["approved_on", "declined_on"]] = "2023-06-01"
    frame.loc[1, ["approved_on", "declined_on"]] = "NA"
    write(place, frame)
    rows = "{made: {rows: {up: {approved_on: present}, down: {declined_on: present, approved_on: absent}}}}"
    twice = "{made: {rows: {up: {approved_on: present}, down: {declined_on: present}}}}"
    change = {"decision": "{column: made, favourable: [up], unfavourable: [down]}"}
    produced = ingested(place, source__derive=rows, **change)
    outcomes = produced.tables[APPLICATIONS.name].to_pandas()["outcome"]
    assert outcomes.sum() == approved[2:].sum() + 1
    assert reasons(produced) == {("missing_decision", "made"): 1}
    assert reasons(ingested(place, source__derive=twice, **change)) == {
        ("missing_decision", "made"): 1,
        ("unknown_category", "made"): 1,
    }


@pytest.mark.parametrize(
    ("derive", "match"),
    [
        ("{made: {rows: {yes: {rase: present}}}}", "no column 'rase'; did you mean 'race'"),
        ("{colour: {column: rase, values: {light: [w]}}}", "no column 'rase'; did you mean 'race'"),
        ("{history: {column: race, values: {light: [w]}}}", "has a column 'history' already"),
    ],
    ids=["rows from nothing", "from nothing", "takes a name"],
)
def test_a_derived_column_that_cannot_be_made_is_named(place: Path, derive: str, match: str) -> None:
    with pytest.raises(SpecError, match=match) as error:
        check_columns(spec_of(place, source__derive=derive))
    assert error.value.location[:2] == ("source", "derive")


@pytest.mark.parametrize(
    ("cell", "code"), [("5.0", "5"), (" 21.00 ", "21"), ("5.10", "5.10"), ("-3.0", "-3"), ("<20%", "<20%"), (None, "")]
)
def test_canonical(cell: str | None, code: str) -> None:
    assert canonical(cell) == code
