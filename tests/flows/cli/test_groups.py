"""The help of the command: groups in the order of use, a whole line for each command, and where to begin."""

import json
import re
import subprocess
import sys
from importlib.metadata import version

import pytest
from conftest import REPOSITORY, environment, evenhand

from flows.cli.main import app
from flows.cli.options import DATA, GROUPS, OTHERS


def lines_of(text: str) -> dict[str, list[str]]:
    """Heading -> the lines of its commands."""
    parts = re.split(r"^(\w+):$", text, flags=re.MULTILINE)[1:]
    return {
        head: [line for line in body.splitlines() if line] for head, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_every_command_has_a_line_in_a_group() -> None:
    said = lines_of(evenhand("--help").stdout)
    assert OTHERS not in said
    found = {head: [line.split()[0] for line in said[head]] for head in GROUPS}
    assert found == {head: list(group) for head, group in GROUPS.items()}
    there = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    there |= {"data", "log", "keys", "schedules", "alerts"}
    assert {name for names in found.values() for name in names} == there


@pytest.mark.parametrize("words", [[], ["--help"], ["data", "--help"]], ids=" ".join)
@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_no_line_is_cut_or_broken_at_any_width(words: list[str], columns: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words],
        env=environment(None) | {"COLUMNS": columns},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    told = DATA if words[:1] == ["data"] else {name: line for group in GROUPS.values() for name, line in group.items()}
    for name, line in told.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", done.stdout, re.MULTILINE), name
    assert "..." not in done.stdout.split("Options:")[1].replace("[ARGS]...", "")
    assert max(len(line) for line in done.stdout.splitlines() if any(t in line for t in told.values())) < 76


def test_without_a_command_it_says_where_to_begin_and_ends_well() -> None:
    done = evenhand()
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("evenhand audit ", "evenhand init ", "--help"):
        assert command in done.stdout.split("Begin with:")[1]


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version_is_told(word: str) -> None:
    done = evenhand(word)
    assert (done.returncode, done.stdout) == (0, f"evenhand {version('evenhand')}\n")


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    done = evenhand("mesures")
    assert done.returncode == 2
    assert "'measures'" in done.stderr


def test_a_message_on_no_lake_is_short_and_whole() -> None:
    for words in (["runs"], ["show"], ["measures"], ["findings"], ["report"], ["status"], ["verify", "x"]):
        done = evenhand(*words, "--lake", "nowhere")
        assert (done.returncode, done.stdout) == (2, ""), words
        assert "no lake at 'nowhere'" in done.stderr
        assert len(done.stderr) <= 240
        assert not json.dumps(done.stderr).count("Traceback")
