"""Every command that the README and the documents show is one that this version takes, word for word."""

import re
import shlex
from functools import cache
from typing import Any

import pytest
import typer
from conftest import REPOSITORY

from flows.cli.main import app
from flows.cli.reference import entries, page

PAGES = (
    "README.md",
    "docs/*.md",
    "docs/methods/*.md",
    "docs/tutorials/*.md",
    "docs/how-to/*.md",
    "data/README.md",
    "deployments/README.md",
)
SHOWN = re.compile(r"`(evenhand [^`\n]+)`|^(evenhand [^\n]+)$", re.MULTILINE)
COMMENT = re.compile(r"\s+#(?!\S).*")
OPTION = re.compile(r"--?[a-zA-Z][a-z-]*")
OMITTED = ("...", "$", "<", "|")
"""Marks of commands that are shown in part, or for a shell."""


def shown(page: str) -> list[str]:
    found = [COMMENT.sub("", quoted or whole).strip() for quoted, whole in SHOWN.findall(page)]
    return [each for each in found if not any(mark in each for mark in OMITTED)]


@cache
def _all_commands() -> Any:
    return typer.main.get_command(app)


def fault(words: list[str]) -> str:
    """Why a command line is not taken; empty where it is. Nothing is run."""
    command = _all_commands()
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name, *words = words
        if name not in command.commands:
            return f"no command {name}"
        command = command.commands[name]
    if hasattr(command, "commands"):
        return ""
    options = {option: each for each in command.params for option in (*each.opts, *each.secondary_opts)}
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if OPTION.fullmatch(name) and name not in (*options, "--help"):
            return f"no option {name}"
        if name in options and not equals and not getattr(options[name], "is_flag", False):
            next(rest, "")  # its value, which may begin with a dash
    return ""


def test_a_command_that_is_none_is_found() -> None:
    assert fault(["audit", "loans.yaml", "--method", "cst"]) == ""
    assert fault(["audit", "loans.yaml", "--metod", "cst"]) == "no option --metod"
    assert fault(["odit", "loans.yaml"]) == "no command odit"
    assert shown("`evenhand audit a.yaml`\n```\nevenhand plan --years 2018    # what\n```") == [
        "evenhand audit a.yaml", "evenhand plan --years 2018",
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", PAGES)
def test_commands_that_pages_show_are_taken(pattern: str) -> None:
    pages = sorted(REPOSITORY.glob(pattern))
    every = [(page.name, line) for page in pages for line in shown(page.read_text())]
    assert every
    faults = {f"{page}: {line}": why for page, line in every if (why := fault(shlex.split(line)[1:]))}
    assert faults == {}


def test_the_reference_is_written_from_the_commands() -> None:
    assert (REPOSITORY / "docs" / "commands.md").read_text() == page(), "run `make docs`"


def test_every_command_and_parameter_has_a_meaning_and_every_command_an_example() -> None:
    commands = list(entries())
    assert len(commands) > 40
    assert [entry.name for entry in commands if not (entry.summary() and entry.example())] == []
    assert [entry.name for entry in commands if any(not p.help for p in entry.command.params)] == []
