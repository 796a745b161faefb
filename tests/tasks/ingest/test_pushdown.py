"""Ingest by SQL gives what its pandas form gives, to the last bit and in the same order."""

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SHARED, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas_ingest import reference

from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.registry import read_spec
from tasks.pipeline.stage import Produced, hold

BUNDLED = REPOSITORY / "data" / "audits"


def tables(produced: Produced) -> dict[str, pa.Table]:
    content, refusals, *_ = hold(ingest, produced, produced.rows_in or 0)
    return {**{name: each for name, each in content.items() if isinstance(each, pa.Table)}, "refusals": refusals}


def told(function: Any, spec: AuditSpec) -> dict[str, pa.Table] | tuple[type[Exception], str, Any]:
    """The tables, or the error with its words and its place in the spec."""
    try:
        produced = function(settings=ingest_settings(spec))
    except EvenhandError as error:
        return type(error), str(error), getattr(error, "location", ())
    return tables(produced)


def assert_same(spec: AuditSpec) -> dict[str, pa.Table] | None:
    found, expected = told(ingest.function, spec), told(reference, spec)
    if isinstance(expected, tuple):
        assert found == expected
        return None
    assert not isinstance(found, tuple), found
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert found[name].schema.equals(table.schema), name
        assert found[name].equals(table), name
        assert str(found[name].to_pandas().to_dict("list")) == str(table.to_pandas().to_dict("list")), "signs of zeros"
    return found


def test_the_bundled_data() -> None:
    found = assert_same(read_spec((BUNDLED / "boston1990.yaml").read_text(), "boston1990.yaml", {}).spec)
    assert found is not None
    assert found["applications"].num_rows + found["refusals"].num_rows == 1989


@pytest.mark.parametrize("name", ["synthetic-lending", "synthetic-mediated", "hmda-twin"])
def test_drawn_applicants(name: str) -> None:
    rows = {"source.synthetic.parameters.rows": "2000"}
    text = (BUNDLED / f"{name}.yaml").read_text()
    assert assert_same(read_spec(text, f"{name}.yaml", rows).spec) is not None


FILES = {
    "adult": ("adult/adult.data.gz", {}),
    "compas": ("compas/compas_two_years_no_names.csv.gz", {}),
    "default-credit": ("default_credit_card/credit-card-clients.csv.gz", {}),
    "german-credit": ("german_credit/german.data.gz", {}),
    "law-school": ("law_school/lsac_law_data_21791.csv.gz", {}),
    "hmda-tx-2022": ("hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz", {}),
}


@pytest.mark.data("data")
@pytest.mark.parametrize("name", FILES)
def test_files_of_the_bundled_specs(name: str) -> None:
    file, more = FILES[name]
    path = {"source.path": str(SHARED / "data" / file), **more}
    assert assert_same(read_spec((BUNDLED / f"{name}.yaml").read_text(), f"{name}.yaml", path).spec) is not None


SPEC = """\
name: made
title: Made
year: 2024
source:
  kind: csv
  path: made.csv
  missing: ['', NA, '-9']
  exempt: [Exempt, '1111']
  keep: {kept: {minimum: 1, maximum: 1e3}, purpose: [buy, '2', é, NA], wealth: present}
  derive: {shade: {column: race, values: {light: [w, ' w'], dark: [b, '3', Exempt]}}}
row_id: id
decision: {column: approved, favourable: ['1', yes], unfavourable: ['2', no]}
outcome: {column: repaid, favourable: ['1'], unfavourable: ['0', '']}
protected:
  - {name: race, columns: [race], groups: {white: [w, '1'], Black: [b]}, reference: white}
  - {name: shade, columns: [shade], reference: light}
  - {name: both, columns: [race, purpose], reference: white and buy}
columns:
  income: {type: continuous, missing: ['0']}
  wealth: {type: continuous, bounds: [-5, 1e6]}
  purpose: {type: nominal}
  shade: {type: nominal}
  history: {type: ordinal, order: ['1', '2', good]}
"""
NUMBERS = (
    *("1", "21.0", " 3.50 ", "1e3", "-0", "-0.0", "+7", "1_000", "0x10", "007", ".5", "5.", "1.", "-.0", "NaN", "nan"),
    *("inf", "-Infinity", "+INF", "1e400", "1e-400", "0.1", "0.30000000000000004", "9007199254740993", "٣", "²", "½"),
    *("12345678901234567890", "18446744073709551616", "123456789012345678", "-9223372036854775809", "--5.0", "a lot"),
    *(
        "0.1234567890123456789",
        "1.7976931348623157e308",
        "5e-324",
        "2.2250738585072011e-308",
        "１２.０",
        "NA",
        "Exempt",
    ),
    *("-9", "", "1111", "0", "0.0", "-9.0", "1e22", "1e23", "123456.789012345", "99999999999999.9", "4.35", "true"),
)
CODES = (
    "1",
    "1.0",
    " 1",
    "1 ",
    "2",
    "02",
    "yes",
    "no",
    "w",
    " w",
    "b",
    "3",
    "3.00",
    "buy",
    "é",
    "é ",
    "\u00a0é",
    "good",
)
CODES += (
    "\u2003",
    "\x1c1",
    "x",
    "NA",
    "Exempt",
    "1111",
    "-9",
    "",
    "'; DROP",
    '"',
    "É",
    "e\u0301",
    "🏠",
    "\x85",
    "²",
    "².0",
)
IDS = ("a", "b", "c", "1", "1.0", " a", "é", "", "NA", "a#3")
COLUMNS = {"approved": CODES[:8], "repaid": ("1", "0", "", "2", "NA")}


def rows_of(name: str) -> st.SearchStrategy[str]:
    if name in ("income", "wealth", "kept"):
        plain = st.sampled_from(["1", "2.5", "30", "500.25", "-3"])
        return st.one_of(plain, st.sampled_from(NUMBERS), st.floats().map(repr), st.integers().map(str))
    if name == "id":
        return st.one_of(st.integers(0, 10**6).map(str), st.sampled_from(IDS))
    return st.sampled_from(COLUMNS.get(name, CODES))


ROW = st.fixed_dictionaries(
    {n: rows_of(n) for n in ("id", "race", "approved", "repaid", "income", "wealth", "kept", "purpose", "history")}
)
SURE = {"race": "w", "repaid": "1", "income": "5", "wealth": "5", "kept": "5", "purpose": "buy", "history": "1"}
USED = [{**SURE, "id": f"s{i}", "approved": "12"[i % 2], "race": "wb"[i // 2 % 2]} for i in range(8)]


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(ROW, max_size=12), st.booleans(), st.booleans())
def test_generated_tables(drawn: list[dict[str, str]], own_ids: bool, as_parquet: bool) -> None:
    frame = pd.DataFrame([*USED, *drawn], dtype=object)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / ("made.parquet" if as_parquet else "made.csv")
        frame.to_parquet(path) if as_parquet else frame.to_csv(path, index=False)
        kind = {"source.kind": "parquet" if as_parquet else "csv", "source.path": str(path)}
        kind |= {} if own_ids else {"row_id": "null"}
        assert_same(read_spec(SPEC, "made.yaml", kind).spec)


@settings(max_examples=examples(20))
@given(st.lists(ROW, max_size=6))
def test_tables_that_cannot_be_audited_end_with_the_same_words(drawn: list[dict[str, str]]) -> None:
    names = [*SURE, "id", "approved"]
    frame = pd.DataFrame(drawn, columns=names, dtype=object)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "made.csv"
        frame.to_csv(path, index=False)
        assert_same(read_spec(SPEC, "made.yaml", {"source.path": str(path), "source.keep": "{}"}).spec)
