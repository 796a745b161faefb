"""Every command that names a run takes it as ``--run RUN`` and by its position."""

import pytest
import typer

from flows.cli.main import app
from flows.cli.options import NamesRun

COMMANDS = {
    name: command for name, command in typer.main.get_command(app).commands.items() if type(command) is NamesRun
}  # type: ignore[attr-defined]


def test_all_commands_about_one_run_are_there():
    assert {"show", "measures", "verdicts", "adjusted", "findings", "report", "verify", "review"} <= set(COMMANDS)


@pytest.mark.parametrize("args", [["loans@2024"], ["--run", "loans@2024"], ["--lake", "x", "loans@2024", "--json"]])
def test_the_log_takes_a_run_by_its_option_and_by_its_position(args):
    log = typer.main.get_command(app).commands["log"]  # type: ignore[attr-defined]
    assert log.make_context("log", list(args), resilient_parsing=True).params["run"] == "loans@2024"
    assert log.make_context("log", ["verify"], resilient_parsing=True).params["run"] is None


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_run_is_taken_by_its_option_and_by_its_position(name):
    command = COMMANDS[name]
    more = [
        word
        for p in command.params
        if p.required and p.name != "run"
        for word in (p.opts[0], "x")
        if p.opts[0][:1] == "-"
    ]
    seen = {
        command.make_context(name, args, resilient_parsing=True).params["run"]
        for args in (
            ["loans@2024", *more],
            ["--run", "loans@2024", *more],
            ["--run=loans@2024", *more],
            [*more, "loans@2024"],
        )
    }
    assert seen == {"loans@2024"}
