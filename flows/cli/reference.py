"""Writes the reference of the command line, docs/commands.md, from the commands themselves (``make docs``)."""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import typer

from flows.cli import options
from flows.cli.main import app

_HEAD: Final = """\
# Commands

Written by `make docs` from the commands. Do not edit. [Run an audit](run-an-audit.md) shows them at work.
Every command has `--help`. `python -m flows.cli` is the same command.

**RUN** is the id of a run, a beginning of it that is unique, or `AUDIT@YEAR` for the valid run of a year: the protected
one, else the last. A command uses the last run of the lake where RUN may be left out.

| exit code | means |
| --- | --- |
| 0 | every question of [the gate](verdicts.md#what-decides-the-exit-code) that ran with a limit is within it |
| 1 | a limit is breached |
| 2 | the spec or the command line is not usable |
| 3 | inconclusive, or nothing was judged |
| 4 | the data do not keep what is declared |
| 5 | a file, a disk or a server is missing; also a fault of ours, whose traceback is in a file that the message names |
| 6 | a file is not the one that was written |
| 129, 130, 143 | stopped: the terminal closed, Ctrl-C, SIGTERM |
| 141 | the reader of the output closed the pipe |
"""
_EXAMPLE: Final = re.compile(r"\s*Examples?:\s*")
_PLAIN: Final[Mapping[str, str]] = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER", "Path": "PATH", "bool": "flag"}


class Entry(NamedTuple):
    """A command with its full name."""

    name: str
    command: Any

    def example(self) -> str:
        """The example at the end of its help; empty if it has none."""
        parts = _EXAMPLE.split(f"{self.command.help or ''} {self.command.epilog or ''}")
        return parts[1].strip() if len(parts) > 1 else ""

    def summary(self) -> str:
        """Its help without the example."""
        return " ".join(_EXAMPLE.split(self.command.help or "")[0].split())


def page() -> str:
    """The reference as Markdown, in the groups of `evenhand --help`."""
    text = _HEAD
    by_name = {entry.name: entry for entry in entries()}
    remaining = dict(by_name)
    for group, names in options.GROUPS.items():
        members = [entry for name in names for entry in by_name.values() if entry.name.split()[1] == name]
        text += f"\n## {group}\n" + "".join(_section(remaining.pop(entry.name)) for entry in members)
    return text + (f"\n## Other\n{''.join(map(_section, remaining.values()))}" if remaining else "")


def entries() -> Iterator[Entry]:
    """Every command that is not hidden, groups of commands among them where they run by themselves."""
    yield from _below("evenhand", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[Entry]:
    if command.hidden is True:
        return
    if not hasattr(command, "commands"):
        yield Entry(name, command)
        return
    if name != "evenhand" and command.invoke_without_command:
        yield Entry(name, command)
    for part, below in command.commands.items():
        yield from _below(f"{name} {part}", below)


def _section(entry: Entry) -> str:
    rows = [_row(parameter) for parameter in entry.command.params if not getattr(parameter, "hidden", False)]
    text = f"\n### `{entry.name}`\n\n{entry.summary()}\n"
    if entry.example():
        text += f"\nExample: {_quoted(entry.example())}\n"
    if rows:
        text += f"\n| parameter | value | default | meaning |\n| --- | --- | --- | --- |\n{''.join(rows)}"
    return text


def _quoted(example: str) -> str:
    """An example with its commands as code, and the words between them as they are."""
    commands = re.split(r"(,? (?:then|or)(?: for [^:]+)?:? )(?=(?:[A-Z_]+=\S+ )*evenhand |--)", example)
    return "".join(part if i % 2 else f"`{part.strip()}`" for i, part in enumerate(commands))


def _row(parameter: Any) -> str:
    """A parameter's row: its names, the value it takes, its default, and its help."""
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
    help_text = " ".join((parameter.help or "").split()).replace("|", "/")
    if parameter.multiple and "again" not in help_text and "repeated" not in help_text:
        help_text += " May be given again."
    variable = f" Also `{parameter.envvar}`." if isinstance(parameter.envvar, str) else ""
    cells = (", ".join(f"`{name}`" for name in names), _value(parameter), _default(parameter), help_text + variable)
    return f"| {' | '.join(cells)} |\n"


def _value(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return "flag"
    if parameter.metavar:
        return f"`{parameter.metavar}`"
    kind = parameter.type_descriptor.annotation
    kind = getattr(kind, "__args__", (kind,))[0]
    if members := getattr(kind, "__members__", None):
        return ", ".join(f"`{member.value}`" for member in members.values())
    return _PLAIN.get(getattr(kind, "__name__", ""), "TEXT")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "**required**"
    default = parameter.default
    if default is None or default is False or default in ([], (), "") or callable(default):
        return ""
    return f"`{default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
