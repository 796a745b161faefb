"""``evenhand bench ingest``: rows drawn are like real ones and always the same, and targets are held against times."""

import json

import duckdb
import pytest
from conftest import evenhand

from research.bench import ingest
from research.bench import timed_ingest as ingest_work
from schemas.errors import SpecError


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ingest")
    made = ingest_work.generate(str(folder), "2000")
    assert (made["rows"], made["file_mb"] > 0.5) == (2000, True)
    return folder


def test_rows_are_the_same_every_time(place, tmp_path):
    ingest_work.generate(str(tmp_path), "2000")
    first, again = (sorted((folder / ingest_work.FILE).read_text().splitlines()) for folder in (place, tmp_path))
    assert first == again
    assert len(first) == 2001
    assert {line.count("|") for line in first} == {98}


def test_rows_are_like_those_of_the_public_files(place):
    said = ingest_work.canonical(str(place))
    assert (said["rows"], said["seconds"] > 0, said["cpu_s"] > 0, said["peak_mb"] > 50) == (2000, *[True] * 3)
    rows = duckdb.read_parquet(str(place / "canonical" / "applications.parquet"))
    shares = rows.aggregate(
        "count(unknown_codes), avg((action_taken = '3')::INT), avg((income_usd IS NULL)::INT), "
        "count(exempt) / count(*), count(distinct lender_id), avg((derived_race = 'White')::INT)"
    ).fetchall()[0]
    unknown, denied, no_income, exempt, lenders, white = shares
    assert (unknown, denied, no_income) == (0, pytest.approx(0.19, abs=0.03), pytest.approx(0.035, abs=0.02))
    assert (white, lenders > 1000, 0.005 < exempt < 0.05) == (pytest.approx(0.65, abs=0.04), True, True)


def test_the_plain_conversion_reads_every_row(place):
    assert ingest_work.plain(str(place))["rows"] == 2000
    assert len(duckdb.read_parquet(str(place / "plain.parquet")).columns) == 99


@pytest.mark.parametrize(
    ("seconds", "peak", "met"),
    [((1.0, 1.9, 6.0), (800.0, 900.0), ["met", "met", "met"]), ((1.0, 2.1, 6.0), (1000.0, 2100.0), ["missed"] * 3)],
)
def test_targets_are_held_against_what_was_measured(monkeypatch, tmp_path, seconds, peak, met):
    rows = 0

    def run(what, place, *about):
        nonlocal rows
        rows = int(about[0]) if about else rows
        longer = rows == 3000
        if what == "generate":
            return {"rows": rows, "seconds": 1.0, "file_mb": 4.0}
        spent = seconds[0] if what == "plain" else seconds[2 if longer else 1]
        return {"rows": rows, "seconds": spent, "cpu_s": spent, "peak_mb": peak[int(longer)]}

    monkeypatch.setattr(ingest, "_run", run)
    said = list(ingest._conversions(tmp_path, 1000, 3000))
    assert [row["met"] for row in said if row["target"]] == met
    assert said[2]["ratio"] == pytest.approx(1 / seconds[1])
    assert said[2]["per_s"] == round(1000 / seconds[1])


def test_lenders_are_read_from_the_sorted_rows(place):
    ingest_work.canonical(str(place))
    told = ingest_work.sorting(str(place))
    assert (told["rows"], told["lenders"] > 1000) == (2000, True)
    middle, largest = (ingest_work.lender(str(place), which) for which in ("middle", "largest"))
    assert 1 <= middle["rows"] < largest["rows"] < 20


@pytest.mark.long
def test_the_command_prints_it():
    done = evenhand("bench", "ingest", "--rows", "6000", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [row["rows"] for row in said] == [2000, 2000, 2000, 6000, 6000, 6000, 2, 7]
    assert all(row["target"] is None for row in said)
    assert said[2]["ratio"] > 0


def test_too_few_rows_say_nothing():
    with pytest.raises(SpecError, match="--rows 10: bench ingest needs 3000 rows at least"):
        ingest.BENCH.run(rows=10)
