"""``evenhand init FILE --check SPEC``: what another year's table has that the spec, and its own table, do not know."""

from pathlib import Path

import pytest

from flows.cli.draft.commands import init
from flows.cli.draft.drafting import drafted
from flows.cli.draft.reading import File, read_file
from flows.cli.draft.review import review
from flows.cli.draft.spec_text import text
from schemas.errors import SpecError

ROWS = 240
HEADER = ("app", "decided on", "date of birth", "race", "income", "purpose", "decision")


def rows(year: int = 2023) -> list[list[str]]:
    """Applications of a year."""
    return [
        [
            f"A{year}{i:04d}",
            f"{1 + i % 12}/{1 + i % 28}/{year}",
            f"{1 + i % 12:02d}/{1 + i % 28:02d}/{year - 20 - i % 60}",
            ("White", "White", "Black")[i % 3],
            f"${20_000 + 137 * i:,}",
            ("buy", "refinance")[i % 2],
            ("Approved", "Denied")[i % 4 == 0],
        ]
        for i in range(ROWS)
    ]


def written(place: Path, name: str, cells: list[list[str]], header=HEADER, mark: str = ",", title: str = "") -> Path:
    """A table of text."""
    lines = [mark.join(f'"{cell}"' if mark in cell else cell for cell in row) for row in (header, *cells)]
    file = place / name
    file.write_text(title + "\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """The draft of the table of 2023, beside it."""
    file = written(tmp_path, "loans.csv", rows())
    path = tmp_path / "loans.yaml"
    path.write_text(text(drafted(read_file(File(file))), path), encoding="utf-8")
    return path


def test_a_table_of_the_same_kind_has_no_changes(spec: Path, tmp_path: Path) -> None:
    assert review(spec, written(tmp_path, "next.csv", rows(2024))).changes == ()
    assert review(spec).changes == ()


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (6, "Countered", "decision: Countered is in no list of the spec (24 rows)"),
        (6, "Escalated", "decision: Escalated is in no list of the spec (24 rows)"),
        (3, "Samoan", "race: new values Samoan (24 rows)"),
        (5, "HELOC", "purpose: new values HELOC (24 rows)"),
        (4, "ask branch", "income: 24 cells (10.0%) are no numbers, before 0.0%"),
        (1, "31.12.2024", "decided on: 24 cells (10.0%) are no dates by the formats of its recipe, before 0.0%"),
        (
            2,
            "31.12.1980",
            "date of birth: 24 cells (10.0%) are no dates of birth by the formats of its recipe, before 0.0%",
        ),
    ],
)
def test_new_words_and_unread_cells_are_named(at: int, value: str, words: str, spec: Path, tmp_path: Path) -> None:
    cells = rows(2024)
    for row in cells[::10]:
        row[at] = value
    changes = review(spec, written(tmp_path, "next.csv", cells)).changes
    assert words in changes
    assert not any("1980" in change for change in changes)


def test_another_header_form_and_recipe_are_named_with_the_likely_column(spec: Path, tmp_path: Path) -> None:
    cells = [[*row[:4], f"{row[4][1:]}.00 EUR", *row[5:], "web"] for row in rows(2024)]
    header = (*HEADER[:3], "applicant_race", *HEADER[4:], "channel")
    changes = review(spec, written(tmp_path, "next.csv", cells, header, ";", "Loans 2024\n\n")).changes
    assert "source.delimiter is ';' for this file, and ',' in the spec" in changes
    assert "source.skip is 2 for this file, and 0 in the spec" in changes
    renamed = "race (now applicant_race? source.rename: {'applicant_race': 'race'})"
    assert f"columns of the spec that the table has no more: {renamed}" in changes
    assert "columns that the spec does not name: applicant_race, channel" in changes
    assert "income: unit would be 'EUR', and is 'USD' in the spec" in changes


def test_the_command_prints_changes_and_writes_nothing(spec: Path, tmp_path: Path, capsys) -> None:
    file = written(tmp_path, "next.csv", [[*row[:3], "Samoan", *row[4:]] for row in rows(2024)])
    before = spec.read_text()
    init(file, check=spec)
    assert "changed: race: new values Samoan (240 rows)" in capsys.readouterr().err
    init(written(tmp_path, "same.csv", rows(2025)), check=spec)
    assert "same.csv is read by" in capsys.readouterr().err
    assert spec.read_text() == before


def test_a_spec_without_a_recipe_checks_no_other_table(spec: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text("name: x\nsource: {kind: csv, path: loans.csv}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"has no recipe \(source.intake\), by which loans.csv could be checked"):
        review(plain, tmp_path / "loans.csv")
