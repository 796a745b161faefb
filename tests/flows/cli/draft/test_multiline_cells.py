"""A drafted spec reads the table it was drafted from, also where cells in quotes go over several lines."""

from pathlib import Path

import pytest
from conftest import evenhand

from flows.cli.draft.commands import draft
from flows.cli.draft.spec_text import Given
from flows.cli.options import load_spec
from schemas.audit.limits import Limits
from tasks.ingest.sources import files

HEADER = "id,approve,race,income,remark"
GIVEN = Given(decision="approve", favourable=("1",))


def written(place: Path, *remarks: str, header: str = HEADER) -> Path:
    """A table of forty rows, of which the first have these remarks, as they stand in the file."""
    rows = [f"{n},{n % 2},{'white' if n % 3 else 'Black'},{1000 + 37 * n}," for n in range(40)]
    rows[: len(remarks)] = [row + remark for row, remark in zip(rows, remarks, strict=False)]
    path = place / "loans.csv"
    path.write_bytes("\n".join([header, *rows, ""]).encode())
    return path


def test_cells_of_several_lines_are_allowed_in_the_draft(tmp_path: Path) -> None:
    path = written(tmp_path, '"two\nlines"', '"three\r\nlines\r\nof text"')
    text = draft(path, GIVEN)
    assert "source: # CHECK: cells in quotes go over several lines" in text
    assert "  multiline: true\n" in text
    spec = tmp_path / "audit.yaml"
    spec.write_text(text)
    source = load_spec(spec, {}).spec.source
    assert source.multiline
    remarks = files.read(source, ["remark"]).table["remark"].to_pylist()
    assert remarks[:3] == ["two\nlines", "three\r\nlines\r\nof text", ""]
    assert len(remarks) == 40


def test_a_header_and_groups_of_several_lines_read_back(tmp_path: Path) -> None:
    path = written(tmp_path, header='id,approve,"race\nor origin",income,remark')
    spec = tmp_path / "audit.yaml"
    spec.write_text(draft(path, GIVEN))
    assert load_spec(spec, {}).spec.protected[0].columns == ("race\nor origin",)


def test_other_tables_are_drafted_without_it(tmp_path: Path) -> None:
    assert "multiline" not in draft(written(tmp_path, '"one line"'), GIVEN)


@pytest.mark.parametrize("remarks", [('"open',), ('"open', "no end", 'closed"x'), ('"open', 'closed"')])
def test_a_stray_quote_ends_with_4(tmp_path: Path, remarks: tuple[str, ...]) -> None:
    done = evenhand("init", str(written(tmp_path, *remarks)), cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "the quote that opens in line 2 " in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_the_draft_asks_for_completeness_and_names_the_default_limits(tmp_path: Path) -> None:
    spec = tmp_path / "audit.yaml"
    spec.write_text(draft(written(tmp_path), GIVEN))
    read = load_spec(spec, {}).spec
    assert read.verdicts.columns_complete == "CHECK"
    assert not read.verdicts.complete
    assert read.verdicts.limits == Limits()
    assert read.thresholds == ()
