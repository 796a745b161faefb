"""The command `intake` prints and writes what a spec reads of its table."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import evenhand

SPEC = """\
name: made
year: 2023  # CHECK: no column tells it
source:
  kind: csv
  path: made.csv
  intake:
    repeats: first
    columns: {income: {read: number, thousands: ',', unit: USD, codes: ['-999']}}
decision: {column: decision, favourable: [approved], unfavourable: [denied], neither: [withdrawn]}
protected:
  - {name: race, columns: [race], reference: White}  # CHECK: the largest group
columns:
  income: {type: continuous}
  purpose: {type: nominal}
  note: {type: nominal, role: excluded}  # free text
"""
ROWS = (
    ("approved", "White", '"$1,000.50"', "buy"),
    ("DENIED ", "black", '"$2,000"', "Buy"),
    ("Approved", "Black", "n/a", ""),
    ("denied", "not provided", "-999", "fix"),
    ("withdrawn", "WHITE", "ask me", "buy"),
    ("sold", "", "7", "buy"),
)


def made(place: Path) -> Path:
    lines = [",".join((*row, str(i))) for i, row in enumerate(ROWS)]
    text = "\n".join(["decision,race,income,purpose,note", *lines, lines[0]]) + "\n"
    (place / "made.csv").write_text(text, encoding="utf-8")
    spec = place / "made.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    return spec


def test_counts_are_over_all_applications(tmp_path: Path) -> None:
    done = evenhand("intake", str(made(tmp_path)), "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["rows"] == {"in": 7, "applications": 6, "refused": {"duplicate": 1}}
    assert document["year"] == 2023
    assert document["decision"] == {
        **{"column": "decision", "favourable": {"approved": 2}, "unfavourable": {"denied": 2}},
        **{"neither": {"withdrawn": 1}, "missing": 0, "unknown": {"sold": 1}},
    }
    (race,) = document["protected"]
    assert race["groups"] == {"White": 2, "black": 2}
    assert (race["nobody"], race["missing"], race["reference"]) == ({"not provided": 1}, 1, "White")
    income = document["columns"]["income"]
    assert income == {
        **{"role": "feature", "kind": "number", "unit": "USD", "n": 3, "sum": 3007.5},
        **{"missing": 2, "unread": 1, "zeros": 0},
    }
    assert document["columns"]["purpose"]["counts"] == {"buy": 4, "fix": 1}
    assert document["columns"]["note"] == {"role": "excluded", "why": "free text"}
    assert {"column": "income", "rule": "currency", "cells": 3, "rows": 3} in document["rules"]
    assert [question["key"] for question in document["questions"]] == ["protected", "year"]
    assert "rows 7: applications 6, 1 duplicate" in done.stdout
    assert "ask me" not in done.stdout + done.stderr


def test_groups_of_one_value_are_counted_under_the_value_and_printed_with_both(tmp_path: Path) -> None:
    spec = made(tmp_path)
    joined = "groups: {W: [white], B: [Black], none: [not provided, '']}, reference: W}"
    spec.write_text(SPEC.replace("reference: White}", joined), encoding="utf-8")
    done = evenhand("intake", str(spec), "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    (race,) = json.loads((tmp_path / "out.json").read_text())["protected"]
    assert (race["reference"], race["groups"], race["nobody"]) == ("white", {"Black": 2, "white": 2}, {"none": 2})
    assert race["names"] == {"white": "W", "Black": "B"}
    assert ["race", "W", "white", "reference", "2"] in [line.split("\t") for line in done.stdout.splitlines()]


def test_the_table_has_numbers_and_printed_spellings(tmp_path: Path) -> None:
    done = evenhand("intake", str(made(tmp_path)), "--out", str(tmp_path / "out.parquet"))
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["income"].to_pylist() == [1000.5, 2000.0, None, None, None, 7.0]
    assert table["decision"].to_pylist() == ["approved", "denied", "approved", "denied", "withdrawn", "sold"]
    assert table["race"].to_pylist() == ["White", "black", "black", "not provided", "White", None]


@pytest.mark.slow
def test_an_audit_names_the_cells_that_stop_it_on_the_terminal_alone(tmp_path: Path) -> None:
    done = evenhand("audit", str(made(tmp_path)), "--lake", str(tmp_path / "lake"), "--until", "ingest")
    assert done.returncode == 4
    assert "1 of the 5 cells of 'income' are no numbers" in done.stderr
    assert done.stderr.strip().endswith("'ask me'")
    kept = [file.read_bytes() for file in (tmp_path / "lake").rglob("*") if file.is_file()]
    assert not any(b"ask me" in content for content in kept)


def test_the_help_has_an_example() -> None:
    done = evenhand("intake", "--help")
    assert done.returncode == 0
    assert "evenhand intake loans.yaml --out loans.parquet" in done.stdout
