"""A relative path of a spec is that beside it, then that of the working directory; one of --set is the latter alone."""

import logging
from pathlib import Path

import pytest
from conftest import SPEC

from flows.cli.options import load_spec
from flows.runs.given import given_spec


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec in one folder, and the command started in another."""
    for name in ("specs", "here"):
        (tmp_path / name).mkdir()
    (tmp_path / "specs" / "loans.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def read(place: Path, **overrides: str) -> Path:
    """The path that an audit would read."""
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    path = load_spec(place / "specs" / "loans.yaml", given).spec.source.path
    assert isinstance(path, str)
    return Path(path)


def test_the_file_beside_the_spec_is_read_though_another_lies_here(apart: Path) -> None:
    (apart / "specs" / "loans.csv").touch()
    (apart / "here" / "loans.csv").touch()
    assert read(apart) == apart / "specs" / "loans.csv"
    assert given_spec(str(apart / "specs" / "loans.yaml")).source.path == str(apart / "specs" / "loans.csv")


def test_the_working_directory_is_second_with_a_note(apart: Path, caplog: pytest.LogCaptureFixture) -> None:
    (apart / "here" / "loans.csv").touch()
    with caplog.at_level(logging.WARNING, "evenhand"):
        assert read(apart) == Path("loans.csv")
    assert "source.path loans.csv is that of the working directory" in caplog.text


def test_a_path_of_set_is_never_taken_from_beside_the_spec(apart: Path) -> None:
    (apart / "specs" / "other.csv").touch()
    assert read(apart, source__path="other.csv") == Path("other.csv")
    assert read(apart, source="{kind: csv, path: other.csv}") == Path("other.csv")


def test_files_of_any_year_count(apart: Path) -> None:
    (apart / "specs" / "loans.yaml").write_text(SPEC.replace("path: loans.csv", "path: 'loans_{year}.csv'"))
    (apart / "specs" / "loans_2019.csv").touch()
    assert read(apart) == apart / "specs" / "loans_{year}.csv"
    (apart / "specs" / "loans_2019.csv").rename(apart / "here" / "loans_2019.csv")
    assert read(apart) == Path("loans_{year}.csv")


def test_a_file_that_is_nowhere_is_looked_for_beside_the_spec(apart: Path) -> None:
    assert read(apart) == apart / "specs" / "loans.csv"


def test_further_files_are_found_as_the_first_is_and_their_folders_identify_nothing(apart: Path) -> None:
    text = SPEC.replace("    columns: [race]\n", "    columns: [race]\n    file: people.csv\n    key: id\n")
    (apart / "specs" / "loans.yaml").write_text(text)
    for name in ("loans.csv", "people.csv"):
        (apart / "specs" / name).touch()
    source = load_spec(apart / "specs" / "loans.yaml", {}).spec.source
    assert [file.path for file in source.second_files] == [str(apart / "specs" / "people.csv")]
    (apart / "specs" / "people.csv").rename(apart / "here" / "people.csv")
    other = load_spec(apart / "specs" / "loans.yaml", {}).spec.source
    assert [file.path for file in other.second_files] == ["people.csv"]
    assert source.identifying() == other.identifying()
