"""Ingest with a recipe: rows and cells add up, clean and messy forms give the same, unread cells stop it."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from audited_tables import HEADER, column, ingested, reasons, rows_of, spec_of, written

from schemas.errors import DataQualityError, SpecError, SuiteError, UnreadCellsError
from schemas.tables.applications import INTAKE_CELLS
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.stage import hold

INCOMES = "source__intake__columns__income"


def test_rows_and_cells_add_up(tmp_path: Path) -> None:
    lines = [*rows_of(400), "B1,withdrawn,White,n/a", "B2,DENIED ,black,-", "B3,,white,$1", "B4,approved,?,many"]
    tables = ingested(spec_of(written(tmp_path, lines)))
    assert reasons(tables) == {"not_a_decision": 1, "missing_decision": 1, "not_a_number": 1}
    assert tables["applications"].num_rows + tables["refusals"].num_rows == len(lines)
    cells = {row["column"]: row for row in tables["intake_cells"].to_pylist()}
    assert {name: row["values"] + row["missing"] + row["unread"] for name, row in cells.items()} == dict.fromkeys(
        ("decision", "race", "income"), len(lines)
    )
    assert (cells["income"]["missing"], cells["income"]["unread"]) == (2, 1)
    rules = {(row["column"], row["rule"]): row["cells"] for row in tables["intake_rules"].to_pylist()}
    assert rules["income", "currency"] == 1
    assert rules["income", "missing_word"] == 2
    assert rules["decision", "fold"] == 1


def test_cells_that_are_counted_twice_end_the_run(tmp_path: Path) -> None:
    produced = ingest.function(settings=ingest_settings(spec_of(written(tmp_path, rows_of(40)))))
    cells = produced.tables[INTAKE_CELLS.name].to_pylist()
    cells[0]["missing"] += 1
    wrong = INTAKE_CELLS.build(**{c.name: [row[c.name] for row in cells] for c in INTAKE_CELLS.columns})
    damaged = replace(produced, tables={**produced.tables, INTAKE_CELLS.name: wrong})
    with pytest.raises(SuiteError, match="intake_cells does not keep") as stopped:
        hold(ingest, damaged, produced.rows_in or 0)
    assert stopped.value.exit_code == 4


def test_a_spec_without_a_recipe_has_no_rows_about_one(tmp_path: Path) -> None:
    tables = ingested(spec_of(written(tmp_path, rows_of(40)), source__intake="null"))
    assert tables["intake_cells"].num_rows == tables["intake_rules"].num_rows == 0
    assert tables["applications"].num_rows == 40


MONEY = (lambda n: f"{n}", lambda n: f"${n:,}", lambda n: f" {n:,}.00 ", lambda n: f"USD {n:,}")
SPELLED = (
    str,
    str.upper,
    str.title,
    lambda word: f"{word} ",
    lambda word: f'"""{word}"""',
    lambda word: f"\u00a0{word}.",
)


def test_clean_and_messy_forms_of_the_same_decisions_give_the_same(tmp_path: Path) -> None:
    r = random.Random(5)
    clean, messy = [], []
    for i in range(300):
        decision, race = r.choice(("approved", "denied", "withdrawn", "")), r.choice(("White", "Black", "asian", ""))
        income = r.choice((None, r.randrange(20_000, 90_000)))
        clean.append(f"A{i},{decision},{race},{'' if income is None else income}")
        spelled = [r.choice(SPELLED)(word) if word else r.choice(("N/A", "", "null")) for word in (decision, race)]
        money = r.choice(("-", "", "n/a")) if income is None else r.choice(MONEY)(income)
        messy.append(";".join([f"A{i}", *spelled, money]))
    plain = ingested(spec_of(written(tmp_path, clean)))
    other = written(tmp_path, messy, HEADER.replace(",", ";"), "messy.csv")
    read = ingested(spec_of(other, source__delimiter=";"))
    for name in ("applications", "refusal_counts"):
        assert _folded(read[name].to_pylist()) == _folded(plain[name].to_pylist())
    assert _folded(read["memberships"].to_pylist()) == _folded(plain["memberships"].to_pylist())
    counts = [[row[k] for k in ("values", "missing", "unread")] for row in read["intake_cells"].to_pylist()]
    assert counts == [[row[k] for k in ("values", "missing", "unread")] for row in plain["intake_cells"].to_pylist()]


def _folded(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows with groups in small letters: the file decides how a group is written that the spec does not name."""
    return [{k: v.lower() if isinstance(v, str) else v for k, v in row.items()} for row in rows]


def test_more_unread_cells_than_a_few_stop_the_audit_and_stay_out_of_the_message(tmp_path: Path) -> None:
    lines = [*rows_of(100), "B1,denied,White,secret-1", "B2,denied,White,secret-2"]
    with pytest.raises(UnreadCellsError) as stopped:
        ingested(spec_of(written(tmp_path, lines)))
    assert stopped.value.exit_code == 4
    assert "2 of the 102 cells of 'income' are no numbers" in str(stopped.value)
    assert "secret" not in str(stopped.value)
    assert set(stopped.value.examples) == {"secret-1", "secret-2"}


def test_a_new_word_of_the_decision_stops_the_audit_by_its_name(tmp_path: Path) -> None:
    few = [*rows_of(200), "B1,purchased,White,5"]
    assert reasons(ingested(spec_of(written(tmp_path, few)))) == {"decision_not_audited": 1}
    with pytest.raises(DataQualityError, match=r"'Purchased' \(5 rows\)") as stopped:
        ingested(spec_of(written(tmp_path, [*few, *(f"C{i},Purchased ,White,5" for i in range(4))])))
    assert stopped.value.exit_code == 4


def test_values_of_the_spec_that_fold_together_have_to_mean_the_same(tmp_path: Path) -> None:
    file = written(tmp_path, rows_of(40))
    with pytest.raises(SpecError, match="the same value once they are folded"):
        ingested(spec_of(file, decision__favourable="[approved]", decision__unfavourable="[denied, Approved.]"))


def test_codes_and_words_mean_missing(tmp_path: Path) -> None:
    lines = [*rows_of(40), 'B1,approved,White,"$-999.00"', "B2,denied,Black,unfiled", "B3,denied,99,7"]
    recipe = "{read: number, thousands: ',', codes: ['-999'], missing: [unfiled]}"
    tables = ingested(
        spec_of(written(tmp_path, lines), **{INCOMES: recipe, "source__intake__columns__race": "{codes: [99]}"})
    )
    assert column(tables, "income")[-3:] == [None, None, 7.0]
    assert tables["memberships"]["group"].to_pylist()[-1] == "(missing)"


@pytest.mark.parametrize(("rule", "refused"), [("first", 2), ("none", 3), ("all", 0)])
def test_rows_equal_in_every_cell_are_counted_once_or_not_at_all(tmp_path: Path, rule: str, refused: int) -> None:
    lines = [f"{line},x" for line in rows_of(40)] + ["A3,denied,Black,20039,x"] * 2 + ["A4,approved,White,20052,other"]
    spec = spec_of(written(tmp_path, lines, f"{HEADER},note"), source__intake__repeats=rule)
    found = reasons(ingested(spec))
    assert found.get("duplicate", 0) == refused
    shared = {"first": 2, "none": 2, "all": 5}[rule]  # A4 differs in a cell that the audit does not read
    assert found.get("duplicate_row_id", 0) == shared


def test_ages_are_cut_into_bands(tmp_path: Path) -> None:
    ages = ("39 yrs", "40", "61.9", "62", "", "n/a", "99")
    lines = [f"{line},{ages[i % len(ages)]}" for i, line in enumerate(rows_of(70))]
    protected = "[{name: age, columns: [age], bands: [40, 62], reference: 40 to 61}]"
    spec = spec_of(
        written(tmp_path, lines, f"{HEADER},age"),
        protected=protected,
        source__intake__columns="{age: {read: number, unit: years, codes: [99]}, income: {read: number}}",
    )
    groups = ingested(spec)["memberships"]["group"].to_pylist()
    assert groups[:7] == ["under 40", "40 to 61", "40 to 61", "62 and over", "(missing)", "(missing)", "(missing)"]


def test_dates_keep_rows_and_tell_the_year(tmp_path: Path) -> None:
    days = ("12/31/2022", "1/1/2023", "7/4/2023", "12/31/2023", "1/1/2024")
    lines = [f"{line},{days[i % len(days)]}" for i, line in enumerate(rows_of(50))]
    file = written(tmp_path, lines, f"{HEADER},day")
    dated = {
        "source__year_column": "day",
        "source__intake__columns": "{day: {read: date, format: '%m/%d/%Y'}, income: {read: number}}",
    }
    tables = ingested(spec_of(file, source__keep="{day: {minimum: 2023-01-01, maximum: 2023-12-31}}", **dated))
    assert reasons(tables) == {"filtered": 20}
    assert tables["source_read"]["year"].to_pylist() == [2023]
    with pytest.raises(DataQualityError, match="rows of other years"):
        ingested(spec_of(file, **dated))


def test_a_second_file_gives_columns_by_a_folded_key_with_its_zeros(tmp_path: Path) -> None:
    lines = [f"00{i},{line.split(',', 1)[1]}" for i, line in enumerate(rows_of(40))]
    first = written(
        tmp_path, [line.replace(",White,", ",").replace(",Black,", ",") for line in lines], "id,decision,income"
    )
    beside = [f" 00{i},{('White', 'BLACK ')[i // 2 % 2]}" for i in range(36)]
    beside += ["000,white", "0,Black", "zz,Black"]  # 000 stands twice, and 0 is not 000
    second = written(tmp_path, beside, "APP ID,race", "people.csv")
    spec = spec_of(first, **{"source__with": f"{{path: {second}, key: {{this: id, other: APP ID}}, columns: [race]}}"})
    tables = ingested(spec)
    assert reasons(tables) == {"outside_join": 1}
    assert tables["applications"].num_rows == 39
    groups = tables["memberships"]["group"].to_pylist()
    assert (groups.count("(missing)"), groups.count("White")) == (5, 17)
    join = [row for row in tables["intake_rules"].to_pylist() if row["rule"] == "join"]
    assert join == [{"column": "", "rule": "join", "cells": 0, "rows": 35}]


def _apart(place: Path, people: list[str]) -> dict[str, str]:
    """A spec whose protected attributes are in a second file."""
    second = written(place, people, "APP ID,race,sex", "people.csv")
    shared = f"file: {second}, key: {{this: id, other: APP ID}}"
    race = f"{{name: race, columns: [race], reference: White, {shared}}}"
    return {"protected": f"[{race}, {{name: sex, columns: [sex], reference: f, {shared}}}]"}


def test_protected_attributes_come_from_a_file_of_their_own_and_every_row_is_counted(tmp_path: Path) -> None:
    first = written(tmp_path, [line.replace(",White", "").replace(",Black", "") for line in rows_of(40)])
    first.write_text(first.read_text().replace(HEADER, "id,decision,income"))
    people = [f"A{i},{('White', 'Black')[i // 2 % 2]},{'fm'[i % 3 % 2]}" for i in range(36)]
    people += ["A0,Black,f", "zz,Black,m"]  # A0 stands there twice, and zz is no application
    spec = spec_of(first, **_apart(tmp_path, people))
    assert [file.columns for file in spec.source.second_files] == [("race", "sex")]  # joined once
    tables = ingested(spec)
    assert reasons(tables) == {"outside_join": 1}
    groups = tables["memberships"].to_pandas().value_counts(["protected_attribute", "group"])
    assert (groups["race", "White"], groups["race", "Black"], groups["race", "(missing)"]) == (17, 18, 5)
    assert groups["sex"].sum() == 40
    rules = {(row["column"], row["rule"]): row["rows"] for row in tables["intake_rules"].to_pylist()}
    assert [rules[name, rule] for name in ("race", "sex") for rule in ("join", "unjoined", "unused")] == [35, 4, 1] * 2


def test_another_content_of_the_second_file_is_another_audit_and_its_folder_is_none(tmp_path: Path) -> None:
    first = written(tmp_path, rows_of(40), "id,decision,old,income")
    people = [f"A{i},{('White', 'Black')[i // 2 % 2]},f" for i in range(40)]
    settings = ingest_settings(spec_of(first, **_apart(tmp_path, people)))
    moved = tmp_path / "moved"
    moved.mkdir()
    same = ingest_settings(spec_of(first, **_apart(moved, people)))
    assert (settings.source_sha256, settings.identifying()) == (same.source_sha256, same.identifying())
    other = ingest_settings(spec_of(first, **_apart(moved, [*people[:-1], "A39,White,f"])))
    assert settings.source_sha256 != other.source_sha256


@pytest.mark.parametrize(
    ("protected", "message"),
    [
        ("[{name: race, columns: [race], reference: White, file: people.csv}]", "joined by a key: add `key`"),
        ("[{name: race, columns: [race], reference: White, key: id}]", "joined by a key: add `file`"),
    ],
)
def test_a_second_file_of_an_attribute_needs_its_key(tmp_path: Path, protected: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec_of(written(tmp_path, rows_of(40)), protected=protected)


def test_a_second_file_of_an_attribute_is_for_tables_of_ones_own(tmp_path: Path) -> None:
    protected = "[{name: race, columns: [race], reference: White, file: people.csv, key: id}]"
    with pytest.raises(SpecError, match="attribute_files"):
        spec_of(written(tmp_path, rows_of(40)), source="{kind: boston1990}", protected=protected)
