"""Records of audits that came to no run: what they hold, and that they harm nothing."""

from pathlib import Path

import pytest

from flows.supervision.failed_audits import Ended, note_failure, paths, read_failure
from schemas.errors import InfrastructureError, IntegrityError
from tasks.lake.store import Lake


def test_each_failure_is_a_record_and_none_replaces_another(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    assert paths(lake) == []
    for _ in range(2):
        note_failure(lake, "no name/../x", "2024", Ended.FAILED, "Data quality")
    found = [read_failure(lake, path) for path in paths(lake)]
    assert [(f.audit, f.year, f.state, f.name) for f in found] == [
        ("no name/../x", "2024", "failed", "Data quality")
    ] * 2
    assert {Path(path).parent.name for path in paths(lake)} == {"failures"}


def test_a_disk_that_is_full_leaves_no_record_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(tmp_path / "lake")

    def full(*_: object) -> bool:
        raise InfrastructureError("the disk is full")

    monkeypatch.setattr(Lake, "add_file", full)
    note_failure(lake, "loans", "2024", Ended.FAILED, "Infrastructure")
    assert "is not recorded in the lake: InfrastructureError" in caplog.text


def test_what_is_no_record_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.write_file("failures/x.json", b"{}")
    with pytest.raises(IntegrityError, match="is no record of a failed audit"):
        read_failure(lake, "failures/x.json")
