"""``evenhand findings --row``: why a row of the source was refused, of which the run wrote no row."""

import json
from pathlib import Path

import pytest
from conftest import evenhand, loans, spec_of

from flows.cli.row import why_refused
from flows.runs.index import digest
from schemas.errors import IntegrityError, SpecError
from tasks.lake.store import Lake
from tasks.plan import plan, walk

RUN = "loans-2024-0123456789"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the first two stages of a run that writes no refused row, and its source."""
    place = tmp_path_factory.mktemp("rows")
    frame = loans().astype(object)
    frame.loc[3, "purpose"] = "other"
    frame.loc[4, "income"] = "NA"
    frame.loc[5, "income"] = "-7"
    frame.to_csv(place / "loans.csv", index=False)
    given = {"source__keep": "{purpose: [buy, refinance]}", "columns__income__bounds": "[0, null]"}
    planned, lake = plan(spec_of(place, refusals__keep="counts", **given)), Lake(place / "lake")
    done = walk(planned.steps[:2], lambda step, read: step.stage.run(lake, read, step.settings, step.modules))
    content = {
        "run": RUN,
        "finished": "2026-01-01T00:00:00Z",
        "spec": planned.spec.model_dump(mode="json"),
        "source_sha256": planned.source_sha256,
        "partitions": [each.model_dump(mode="json", exclude={"reused"}) for each in done],
    }
    lake.write_file(f"runs/{RUN}/manifest.json", json.dumps({**content, "sha256": digest(content)}).encode())
    return place


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("L0003", ("ingest", "filtered", "purpose")),
        ("L0004", ("preprocess", "missing_covariate", "income")),
        ("L0005", ("ingest", "failed_expectation", "income")),
    ],
)
def test_a_row_that_was_not_written_is_asked_of_the_source_again(folder: Path, row: str, why: tuple[str, ...]) -> None:
    [said] = why_refused(Lake(folder / "lake"), RUN, row).to_pylist()
    assert (said["row_id"], said["stage"], said["reason"], said["column"]) == (row, *why)


def test_of_a_row_that_was_used_nothing_is_said_and_an_unknown_one_is_an_error(folder: Path) -> None:
    assert why_refused(Lake(folder / "lake"), RUN, "L0001") is None
    with pytest.raises(SpecError, match="no such row; ids are those of column 'id'"):
        why_refused(Lake(folder / "lake"), RUN, "L9999")


def test_the_command_prints_it_and_says_that_it_is_restricted(folder: Path) -> None:
    done = evenhand("findings", "--lake", str(folder / "lake"), "--run", RUN, "--row", "L0003", "--json")
    assert json.loads(done.stdout)[0]["reason"] == "filtered"
    assert "restricted" in done.stderr
    used = evenhand("findings", "--lake", str(folder / "lake"), "--run", RUN, "--row", "L0001")
    assert (used.returncode, used.stdout) == (0, "")
    assert "refused by no stage" in used.stderr


def test_another_source_is_not_asked(folder: Path) -> None:
    text = (folder / "loans.csv").read_text()
    try:
        (folder / "loans.csv").write_text(text.replace("other", "buy"))
        with pytest.raises(IntegrityError, match="has changed since"):
            why_refused(Lake(folder / "lake"), RUN, "L0003")
    finally:
        (folder / "loans.csv").write_text(text)
