"""How a run is named: by its id, the beginning of one, AUDIT@YEAR, or not at all; and what a wrong name is told."""

from pathlib import Path

import pytest
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs

from flows.runs.index import published_beside
from flows.runs.run_names import named, opened
from flows.runs.signatures import protect
from schemas.errors import SpecError
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of_runs(tmp_path_factory.mktemp("naming") / "lake")


@pytest.mark.parametrize(
    ("given", "run"),
    [
        (None, NEW),
        (OLD, OLD),
        ("loans-2023-01", OLD),
        ("c", OTHER),
        ("loans@2023", NEW),
        ("cards@2024", OTHER),
    ],
)
def test_a_run_is_found_by_each_of_its_names(lake: Lake, given: str | None, run: str) -> None:
    assert named(lake, given) == run


def test_a_year_is_its_protected_run(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    protect(lake, OLD, protected=True)
    assert named(lake, "loans@2023") == OLD
    assert named(lake, None) == NEW


def test_published_runs_of_the_same_data_are_known_to_each_other(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert published_beside(lake, NEW) == []
    protect(lake, OLD, protected=True)
    protect(lake, OTHER, protected=True)
    assert published_beside(lake, NEW) == [OTHER, OLD], "of the same file, another audit too"
    assert published_beside(lake, OLD) == [OTHER]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("loans", (OLD, NEW, "2 begin so", "give more letters")),
        ("loans-2023-0", (OLD, NEW)),
        ("loams@2023", ("'loams' in 2023", "did you mean 'loans@2023'?")),
        ("loans@2022", ("'loans' in 2022", "did you mean 'loans@2023'?")),
        ("loans@then", ("loans@then", "AUDIT@YEAR", "evenhand runs")),
        ("@2023", ("no run of '' in 2023",)),
        ("loans-2023-0123456780", (f"did you mean '{OLD}'?",)),
        ("", ("no run ''",)),
        ("../runs", ("no run '../runs'",)),
        ("..", ("no run '..'",)),
    ],
)
def test_a_wrong_name_is_told_what_it_fits(lake: Lake, given: str, words: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as refused:
        named(lake, given)
    assert [word for word in words if word not in str(refused.value)] == []
    assert len(str(refused.value).replace(lake.location, "LAKE")) <= 240


def test_no_lake_and_no_run_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no lake at"):
        opened(str(tmp_path / "nowhere"), None)
    assert not (tmp_path / "nowhere").exists()
    empty = Lake(tmp_path / "empty")
    for given in (None, "loans", "loans@2023"):
        with pytest.raises(SpecError, match="holds no run"):
            opened(empty.location, given)
