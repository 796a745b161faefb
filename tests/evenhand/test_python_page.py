"""The page about Python: its code runs as it stands, and its list of classes is the package's."""

import re

import pytest
from conftest import REPOSITORY

import evenhand as eh

PAGE = (REPOSITORY / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_class_and_function_is_on_the_page() -> None:
    assert [name for name in eh.__all__ if name not in PAGE and name != "AuditResult"] == []


@pytest.mark.long
def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert len(BLOCKS) == 4
    assert "white" in capsys.readouterr().out
