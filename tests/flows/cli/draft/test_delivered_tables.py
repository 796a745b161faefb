"""The same of the published tables themselves, where they are here."""

import gzip
from pathlib import Path

import pytest
from conftest import SHARED, evenhand
from test_shapes import applications, drafted

pytestmark = pytest.mark.data("data")

FILES = {
    "german.data": "german_credit/german.data.gz",
    "south.csv": "german_credit/south_german.csv.gz",
    "compas.csv": "compas/compas_two_years_no_names.csv.gz",
    "travis.csv": "hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv",
}


def delivered(name: str, place: Path) -> Path:
    """A file as its publisher gives it, in a folder of the test."""
    source = SHARED / "data" / FILES[name]
    content = source.read_bytes()
    (place / name).write_bytes(gzip.decompress(content) if source.suffix == ".gz" else content)
    return place / name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("german.data", ("no header", "german-credit.yaml --set source.path=german.data", "Likeliest: Status (")),
        ("south.csv", ("cells between blanks", "Likeliest: kredit (1 700, 0 300)")),
        ("compas.csv", ("compas.yaml --set source.path=compas.csv", "Likeliest: two_year_recid (")),
        ("travis.csv", ("travis.csv is HMDA, data browser layout", "source.vintage=null --year 2024")),
    ],
)
def test_nothing_is_taken_silently(name: str, said: tuple[str, ...], tmp_path: Path) -> None:
    done = evenhand("init", delivered(name, tmp_path).name, cwd=tmp_path)
    assert done.returncode == 2
    assert not done.stdout
    for words in said:
        assert words in done.stderr


@pytest.mark.parametrize(
    ("name", "words", "reference"),
    [
        ("german.data", ("--decision", "Status", "--favourable", "1"), "A93"),
        ("south.csv", ("--decision", "kredit", "--favourable", "1"), "3"),
        ("compas.csv", ("--decision", "two_year_recid"), "African-American"),
        ("travis.csv", ("--decision", "action_taken"), "White"),
    ],
)
def test_a_draft_has_applications_and_no_column_from_after_the_decision(
    name: str, words: tuple[str, ...], reference: str, tmp_path: Path
) -> None:
    spec = drafted(delivered(name, tmp_path), *words)
    assert spec.protected[0].reference == reference
    later = ("denial_reason", "interest_rate", "rate_spread", "purchaser", "total_loan_costs", "is_recid", "r_charge")
    assert [feature for feature in spec.features() if feature.startswith(later)] == []
    read = {"german.data": 1000, "south.csv": 1000, "compas.csv": 7214, "travis.csv": 1442}[name]
    assert applications(spec, tmp_path) > read / 2
