"""The publisher's offers: every year of every data set has an address, and the counts are those that are published."""

import csv
from datetime import date
from typing import get_args

import pytest
from conftest import SHARED

from schemas.errors import SpecError
from schemas.vintages import DATASETS, DatasetName, dataset_of, place_of
from tasks.ingest.vintages.offers import estimate, official

PLACES = {"nationwide": "nationwide", "state": "NV", "county": "county-48453", "msa": "msa-12420", "lender": "L" * 20}
FILES = "https://files.ffiec.cfpb.gov"
VIEW = "https://ffiec.cfpb.gov/v2/data-browser-api/view"
EVERY = "actions_taken=1,2,3,4,5,6,7,8"


@pytest.mark.parametrize(
    ("dataset", "year", "geography", "address"),
    [
        ("snapshot", 2022, "nationwide", f"{FILES}/static-data/snapshot/2022/2022_public_lar_csv.zip"),
        ("one-year", 2021, "nationwide", f"{FILES}/static-data/one-year/2021/2021_public_lar_one_year_csv.zip"),
        ("three-year", 2017, "nationwide", f"{FILES}/static-data/three-year/2017/2017_public_lar_three_year_csv.zip"),
        ("dynamic", 2024, "nationwide", f"{FILES}/dynamic-data/2024/2024_lar.zip"),
        (
            *("historic", 2012, "NV"),
            "https://files.consumerfinance.gov/hmda-historic-loan-data/hmda_2012_nv_all-records_labels.zip",
        ),
        ("data-browser", 2018, "DC", f"{VIEW}/csv?states=DC&years=2018&{EVERY}"),
        ("data-browser", 2018, "nationwide", f"{VIEW}/nationwide/csv?years=2018&{EVERY}"),
        ("data-browser", 2018, "county-11001", f"{VIEW}/csv?counties=11001&years=2018&{EVERY}"),
        ("data-browser", 2018, "msa-12420", f"{VIEW}/csv?msamds=12420&years=2018&{EVERY}"),
        (
            *("modified-lar", 2024, "549300GAX7IKJUKCJE72"),
            "https://ffiec.cfpb.gov/file/modifiedLar/year/2024/institution/549300GAX7IKJUKCJE72/csv/header",
        ),
    ],
)
def test_addresses_are_the_documented_ones(dataset: DatasetName, year: int, geography: str, address: str) -> None:
    assert official().address(dataset, year, geography) == address


def test_every_year_of_every_data_set_has_an_address_for_every_place_that_it_is_offered_for() -> None:
    seen = []
    for dataset, offer in official().dataset.items():
        for year in range(offer.years[0], offer.years[1] + 1):
            for place in offer.address:
                address = official().address(dataset, year, PLACES[place], "http://127.0.0.1:1/")
                assert address.startswith("http://127.0.0.1:1/")
                assert "{" not in address
                assert str(year) in address
                seen.append(address)
        assert set(offer.frozen) <= set(range(offer.years[0], offer.years[1] + 1))
    assert len(set(seen)) == len(seen) > 50
    assert set(official().dataset) == set(DATASETS) - {"twin", "submission"}


def test_freeze_dates_follow_their_year() -> None:
    snapshots, last = official().dataset["snapshot"].frozen, official().dataset["three-year"].frozen
    assert snapshots[2024] == date(2025, 5, 19)
    assert all(date(year + 1, 4, 1) < day < date(year + 1, 9, 1) for year, day in snapshots.items())
    assert all(day == date(year + 3, 12, 31) for year, day in last.items())


@pytest.mark.data("data/hmda_schema")
def test_counts_are_the_published_ones() -> None:
    columns = {"historic": "historic_portal", "first": "first_snapshot", "latest": "cfpb_frontend_count"}
    with (SHARED / "data" / "hmda_schema" / "published_row_counts.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name, column in columns.items():
        assert official().rows[name] == {int(row["year"]): int(row[column]) for row in rows if row[column]}


def test_states_add_up_to_most_of_the_country() -> None:
    """The rest has no state, or one of the small territories."""
    for at, year in enumerate(range(2018, 2026)):
        states = sum(counts[at] for counts in official().states.values())
        country = official().rows["latest"][year]
        assert 0.97 * country < states < country


def test_estimates_grow_with_the_rows() -> None:
    texas, country = estimate("data-browser", 2022, "TX"), estimate("data-browser", 2022, "nationwide")
    assert (texas.rows, country.rows) == (1_388_354, 16_125_975)
    assert country.raw_bytes == 6_120_000_000
    assert texas.raw_bytes == pytest.approx(country.raw_bytes * texas.rows / country.rows, abs=1)
    snapshot = estimate("snapshot", 2022, "nationwide")
    assert snapshot.download_bytes < snapshot.raw_bytes < snapshot.disk_bytes < 2 * snapshot.raw_bytes
    assert estimate("historic", 2012, "NV").disk_bytes is None


@pytest.mark.parametrize(
    ("dataset", "year", "geography", "said"),
    [
        ("snapshot", 2012, "nationwide", r"known for 2017 to 2025; 2012 is in: historic\."),
        ("snapshot", 2031, "nationwide", r"no data set that is known here has 2031\. A file that you have"),
        ("snapshot", 2022, "TX", r"offered by nationwide, not by state \(TX\)"),
        ("twin", 2022, "nationwide", "not published; `evenhand data twin` writes"),
        ("snapshot", 2022, "Texas", r"no place 'Texas'; write nationwide, the letters of a state"),
        ("snapshot", 2022, "../..", "no place"),
    ],
)
def test_what_is_not_offered_is_named_with_what_is(dataset: DatasetName, year: int, geography: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        official().address(dataset, year, geography)


def test_kinds_and_places_are_told_apart() -> None:
    assert [place_of(code)[0] for code in PLACES.values()] == list(PLACES)
    assert place_of("county-48453") == ("county", "48453")
    assert [dataset_of(name) for name in DATASETS] == list(get_args(DatasetName))
    with pytest.raises(SpecError, match="did you mean 'snapshot'"):
        dataset_of("snapshots")
