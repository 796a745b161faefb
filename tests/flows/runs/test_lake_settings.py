"""Settings of a lake: defaults without a file, and every fault with its line and the nearest name."""

from pathlib import Path

import pytest

from flows.runs.lake_settings import THREE_YEARS, lake_settings
from schemas.errors import SpecError
from tasks.lake.store import Lake


def test_without_a_file_nothing_younger_than_three_years_goes(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    assert lake_settings(lake.storage).retention.minimum_days == THREE_YEARS == 1095
    (lake.root / "settings.yaml").write_text("")
    assert lake_settings(lake.storage).retention.keep_runs is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("retention:\n  keep_run: 3\n", "line 2: no setting is called 'retention.keep_run'; did you mean 'keep_runs'?"),
        ("retention:\n\n  minimum_days: -1\n", "line 3: retention.minimum_days"),
        ("retention: soon\n", "line 1: retention"),
        ("- a\n", "line 1"),
        ("retention: {keep_runs: 1, keep_runs: 2}\n", "'keep_runs' stands there twice"),
        ("retention: [\n", "not YAML"),
        ("retention: {keep_days: .inf}\n", "keep_days"),
        ("lineage: {transport: http}\n", "the transport http needs the key 'url'"),
        ("lineage: {transport: file, pth: x}\n", "no setting is called 'lineage.pth'; did you mean 'path'?"),
    ],
)
def test_a_fault_names_file_line_and_expectation(text: str, told: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    (lake.root / "settings.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        lake_settings(lake.storage)
    assert told in str(caught.value)
    assert str(lake.root / "settings.yaml") in str(caught.value)
