"""The summary beside a manifest: what it holds, how large it is, and that it is sealed."""

import json
from pathlib import Path

import pytest
from lake_of_runs import NEW, lake_of_runs

from flows.runs.index import digest, read_manifest
from flows.runs.signatures import verify_run
from flows.runs.summary import MOST_BYTES, NAMED, Figure, read_summary, summary_path, write_summary, written
from schemas.errors import IntegrityError
from tasks.lake.store import Lake


def sealed(lake: Lake) -> None:
    """Give the run a summary as one that is published has it."""
    manifest = read_manifest(lake, NEW)
    content = {**manifest, NAMED: write_summary(lake, manifest)}
    text = json.dumps({**content, "sha256": digest(content)}, indent=1)
    (lake.root / "runs" / NEW / "manifest.json").write_text(text)


def test_it_has_the_states_by_question_and_the_three_figures(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    said = read_summary(lake, NEW)
    assert (said.audit, said.year, said.state) == ("loans", 2023, "outside")
    assert list(said.question_states)[:2] == ["approval_rates", "similar_applicants"]
    assert [figure.name for figure in said.figures[:3]] == ["all", "adjusted", "nearest"]
    assert {figure.group for figure in said.figures[3:]} == {"Black", "Asian"}


def test_a_run_without_a_file_says_the_same_as_one_with_it(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    before = read_summary(lake, NEW)
    sealed(lake)
    assert lake.storage.exists(summary_path(NEW))
    assert read_summary(lake, NEW) == before


def test_it_has_at_most_8_kb_and_counts_what_found_no_room(tmp_path: Path) -> None:
    said = read_summary(lake_of_runs(tmp_path / "lake"), NEW)
    many = tuple(
        Figure(name="similar_applicants", attribute="race", group=f"group {n}", value=n / 7) for n in range(400)
    )
    large = said.model_copy(update={"figures": many})
    content = json.loads(written(large))
    assert len(written(large)) <= MOST_BYTES
    assert len(content["figures"]) + content["left"] == 400


def test_a_file_that_is_larger_than_any_that_is_written_is_not_read(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    sealed(lake)
    path = lake.root / summary_path(NEW)
    path.write_bytes(path.read_bytes() + b" " * MOST_BYTES)
    with pytest.raises(IntegrityError, match=r"summary\.json cannot be read"):
        read_summary(lake, NEW)


def test_a_title_of_any_length_leaves_room(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", spec={"title": "\x1b" * 50_000})
    sealed(lake)
    assert read_summary(lake, NEW).title == "\x1b" * 400


def test_an_altered_or_missing_summary_is_found_by_verify(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    verify_run(lake.location, NEW)
    sealed(lake)
    verify_run(lake.location, NEW)
    path = lake.root / summary_path(NEW)
    content = path.read_bytes()
    for broken in (content.replace(b"outside", b"within", 1), None):
        path.unlink() if broken is None else path.write_bytes(broken)
        with pytest.raises(IntegrityError, match=r"summary\.json"):
            verify_run(lake.location, NEW)


def test_a_summary_that_no_manifest_names_is_found(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    write_summary(lake, read_manifest(lake, NEW))
    with pytest.raises(IntegrityError, match="is not named"):
        verify_run(lake.location, NEW)
