"""The twin of HMDA as files and as a source: layouts, codes, the truth beside, and the audit spec."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, SHARED

from schemas.audit.source import Source
from schemas.errors import SpecError
from tasks.ingest import registry
from tasks.ingest.hmda import source as hmda_source
from tasks.ingest.hmda.conversion import convert
from tasks.ingest.hmda.layouts import BY_NAME, normalised, recognise
from tasks.ingest.stage import ingest, ingest_settings
from tasks.ingest.synthetic import twin_files
from tasks.ingest.synthetic.algorithm.twin import TwinSettings, flip_shares, generate
from tasks.ingest.synthetic.twin_files import write
from tasks.pipeline.registry import read_spec

SPEC = REPOSITORY / "data" / "audits" / "hmda-twin.yaml"
DRAW = "source.synthetic.parameters"
LAYOUTS = {2022: "public_lar", 2009: "historic_codes", 2017: "historic_codes"}
PLANTED = TwinSettings(rows=3000, discrimination="direct", coapplicants=0.4)


def lines(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="|" if file.suffix == ".txt" else ","))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    return {year: write(folder, replace(PLANTED, year=year), seed=5) for year in LAYOUTS}


@pytest.mark.parametrize("year", LAYOUTS)
def test_columns_are_those_of_the_layout_and_every_row_has_them(files, year):
    rows = lines(files[year].rows)
    assert len(rows) == PLANTED.rows
    assert [normalised(name) for name in rows[0]] == list(BY_NAME[LAYOUTS[year]].columns)
    assert len(rows[0]) == (99 if year >= 2018 else 45)
    assert all(None not in row and None not in row.values() for row in rows)
    assert {row.get("activity_year") or row["as_of_year"] for row in rows} == {str(year)}


def known_codes() -> dict[tuple[str, str], set[str]]:
    """(field, era) -> codes."""
    file = SHARED / "data" / "hmda_schema" / "code_sets.csv"
    found: dict[tuple[str, str], set[str]] = {}
    with file.open(newline="") as stream:
        for line in csv.DictReader(stream):
            for era in ("modern", "historic"):
                if line["years"] == "all" or line["years"].startswith("2018" if era == "modern" else "2007"):
                    found.setdefault((normalised(line["field"]), era), set()).add(line["code"])
    return found


@pytest.mark.data("data/hmda_schema")
@pytest.mark.parametrize("year", LAYOUTS)
def test_every_code_is_a_published_one(files, year):
    known, era = known_codes(), "modern" if year >= 2018 else "historic"
    blank = {"denial_reason_1", "applicant_race_2", "co_applicant_race_2"}
    checked = 0
    for name, column in columns_of(files[year].rows).items():
        codes = known.get((name, era))
        if codes is None or name in ("purchaser_type", "agency_code"):
            continue
        values = set(column) - ({""} if era == "historic" and name in blank else set())
        assert values <= codes, (name, values - codes)
        checked += 1
    assert checked >= (30 if era == "modern" else 15)


def columns_of(file: Path) -> dict[str, list[str]]:
    rows = lines(file)
    return {normalised(name): [row[name] for row in rows] for name in rows[0]}


def test_what_is_missing_or_exempt_is_said_as_each_family_says_it(files):
    now, then = columns_of(files[2022].rows), columns_of(files[2009].rows)
    exempt = [value == "Exempt" for value in now["property_value"]]
    assert any(exempt)
    for name in ("debt_to_income_ratio", "combined_loan_to_value_ratio", "interest_rate"):
        assert [value == "Exempt" for value in now[name]] == exempt
    for name in ("reverse_mortgage", "denial_reason_1", "aus_1"):
        assert [value == "1111" for value in now[name]] == exempt
    assert "NA" in now["income"]
    assert "NA" not in then["applicant_income_000s"]
    assert "" in then["applicant_income_000s"]


@pytest.mark.parametrize("year", LAYOUTS)
def test_the_truth_fits_the_rows_one_by_one(files, year):
    written = files[year]
    truth = pq.read_table(written.truth).to_pandas()
    actions = np.array(list(map(int, columns_of(written.rows)["action_taken"])))
    assert len(truth) == 2 * PLANTED.rows
    assert sorted(set(truth["protected_attribute"])) == ["race", "sex"]
    action = actions[truth["source_row"] - 1]
    assert (truth["decided"] == ~np.isin(action, (4, 5, 6))).all()
    assert (truth["approved"][truth["decided"]] == np.isin(action[truth["decided"]], (1, 2, 8))).all()
    changed = truth["approved"] != truth["counterfactual_approved"]
    assert (truth["flips"] == changed & truth["decided"]).all()
    assert (truth["group"] != truth["to_group"]).all()
    black = truth[(truth["protected_attribute"] == "race") & (truth["group"] == "Black")]
    assert np.allclose(black["counterfactual_logit"] - black["logit"], PLANTED.strength)
    drawn = generate(replace(PLANTED, year=year), np.random.default_rng(5))
    share = next(each for each in flip_shares(drawn) if each.group == "Black")
    assert (black["flips"].sum(), black["decided"].sum()) == (share.flips, share.decisions)
    assert share.flips > 20


def test_amounts_are_in_the_units_of_the_year(files):
    drawn = generate(replace(PLANTED, year=2009), np.random.default_rng(5))
    then = columns_of(files[2009].rows)
    assert [1000 * int(value) for value in then["loan_amount_000s"]] == drawn.published.loan_amount.tolist()
    drawn = generate(replace(PLANTED, year=2022), np.random.default_rng(5))
    now = columns_of(files[2022].rows)
    assert [float(value) for value in now["loan_amount"]] == drawn.published.loan_amount.tolist()
    assert {float(value) % 10_000 for value in now["loan_amount"]} == {5_000}
    assert [value for value in now["income"] if value != "NA"] == [
        str(value) for value in drawn.published.income[~drawn.unreported.income]
    ]


def test_the_same_seed_writes_the_same_bytes_in_blocks_of_any_twin(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.ingest.synthetic.algorithm.twin.BLOCK", 400)
    one, again, other = (
        write(tmp_path / name, replace(PLANTED, rows=1000), seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.rows.read_bytes() == again.rows.read_bytes() != other.rows.read_bytes()
    assert pq.read_table(one.truth).equals(pq.read_table(again.truth))
    assert len(lines(one.rows)) == one.count == 1000
    assert sorted(set(pq.read_table(one.truth)["source_row"].to_pylist())) == list(range(1, 1001))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted([one.rows.name, one.truth.name])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"year": 2006}, "year of the twin is 2006; expected a year from 2007 to 2025"),
        ({"female": 1.5}, "female of the twin is 1.5"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, changes, said):
    with pytest.raises(SpecError, match=said):
        write(tmp_path, replace(PLANTED, **changes), seed=0)
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("year", LAYOUTS)
def test_a_loader_reads_back_what_was_drawn(files, year):
    """Every canonical column of every row; derived groups, too, which the loader works out for years before 2018."""
    drawn = twin_files.canonical_columns(generate(replace(PLANTED, year=year), np.random.default_rng(5)))
    source = Source(kind="hmda", path=str(files[year].rows), year=year)
    assert set(drawn) <= set(hmda_source.header(source))
    raw = hmda_source.read(source, list(drawn))
    assert (raw.source_row, len(raw.unread)) == (list(range(1, PLANTED.rows + 1)), 0)
    for name, column in drawn.items():
        assert [*map(cell, raw.table[name].to_pylist())] == [*map(cell, column.to_pylist())], name


def cell(text: str) -> float | str | None:
    """A cell as a number if it is one, and None where it is missing."""
    try:
        return float(text)
    except ValueError:
        return None if text in ("", "NA") else text


@pytest.mark.parametrize("year", LAYOUTS)
def test_no_row_of_a_twin_departs_from_its_layout(files, year, tmp_path):
    converted = convert(recognise(files[year].rows, tmp_path), tmp_path)
    assert (converted.rows_in, converted.rows, dict(converted.refused)) == (PLANTED.rows, PLANTED.rows, {})
    assert dict(converted.years) == {year: PLANTED.rows}
    assert not converted.unknown_codes


def spec_of(**overrides: str):
    said = {f"{DRAW}.rows": "600", **{key.replace("__", "."): value for key, value in overrides.items()}}
    return read_spec(SPEC.read_text(encoding="utf-8"), SPEC.name, said).spec


def test_the_audit_spec_takes_every_row_and_refuses_undecided_ones_by_reason():
    spec = spec_of()
    registry.check_columns(spec)
    made = ingest.function(settings=ingest_settings(spec))
    reasons = made.refusals["reason"].to_pylist()
    assert made.tables["applications"].num_rows + len(reasons) == 600
    drawn = generate(registry.reader_of(spec.source).coefficients(spec.source), np.random.default_rng(0))
    assert reasons.count("decision_not_audited") == (~drawn.decided).sum()
    favourable = made.tables["applications"]["favourable"].to_numpy(zero_copy_only=False)
    assert (favourable == drawn.world.approved[drawn.decided]).all()


def test_a_year_before_2018_has_no_column_that_was_not_published():
    early = spec_of(source__synthetic__parameters__year="2012")
    with pytest.raises(SpecError, match="no column 'property_value_usd'"):
        registry.check_columns(early)
    assert "income_usd" in registry.reader_of(early.source).header(early.source)


@pytest.mark.parametrize("year", [2012, 2017, 2022])
def test_canonical_columns_agree_with_the_raw_ones(year):
    """By hand, from the raw layout: units, refinancing, lenders."""
    drawn = generate(replace(PLANTED, year=year), np.random.default_rng(5))
    found = {name: column.to_pylist() for name, column in twin_files.canonical_columns(drawn).items()}
    raw = {
        name: column.to_pylist()
        for name, column in (twin_files.modern_columns if year >= 2018 else twin_files.historic_columns)(drawn).items()
    }
    assert list(found) == twin_files.names(drawn.settings)
    if year >= 2018:
        assert found["lender_id"] == raw["lei"]
        assert found["income_usd"] == [text if text == "NA" else f"{text}000" for text in raw["income"]]
        codes = {"1": "1", "2": "2", "31": "3", "32": "3", "4": "4"}
        assert found["loan_purpose"] == [codes[text] for text in raw["loan_purpose"]]
    else:
        pairs = zip(raw["agency_code"], raw["respondent_id"], strict=True)
        assert found["lender_id"] == [f"{agency}-{respondent}" for agency, respondent in pairs]
        assert found["loan_amount_usd"] == [f"{text}000" for text in raw["loan_amount_000s"]]
        assert found["lien_status"] == ["NA" if text == "4" else text for text in raw["lien_status"]]
