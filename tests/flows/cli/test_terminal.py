"""What the consoles of the commands print: tables and progress, to a pipe and on a real terminal."""

import io
import json
import logging
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from flows.cli.terminal import Lines, PlainConsole, ProgressFile, print_table, show_progress, visible
from tasks.pipeline.progress import Course

NAMES = ("year", "state", "why")
LONG = "/a/very/long/path/that/has/no/blank/in/it/loans_2012.csv"
ROWS = [
    (
        Text("2012"),
        Text("failed", style="red"),
        Text(f"no file at {LONG}:\nadd it with --set source.path=FILE 1,234.5"),
    ),
    (Text("2013"), Text("within"), Text("")),
]


def printed(width: int, *, terminal: bool, colour: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, no_color=not colour)
    print_table(console, NAMES, ROWS)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_in_a_pipe_a_row_is_a_line_with_tabs_and_whole_words() -> None:
    assert printed(10, terminal=False).split("\n") == [
        "year\tstate\twhy",
        f"2012\tfailed\tno file at {LONG}: add it with --set source.path=FILE 1,234.5",
        "2013\twithin\t",
        "",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_on_a_terminal_only_the_last_column_wraps_and_never_in_a_word(width: int) -> None:
    lines = printed(width, terminal=True, colour=False).splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert "year  state   why" in lines
    words = [word for line in lines[1:] for word in line.split()]
    assert words == [word for row in ROWS for cell in row for word in cell.plain.split()]
    wide = [line for line in lines if len(line) > max(width, len("2012  failed"))]
    assert all(LONG in line for line in wide)


def test_a_state_is_coloured_on_a_terminal_only() -> None:
    assert "\x1b[31mfailed" in printed(80, terminal=True)
    assert "\x1b" not in printed(80, terminal=False)
    assert "\x1b[31m" not in printed(80, terminal=True, colour=False)


def test_a_pipe_gets_the_start_and_end_of_a_stage_and_lines_between(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="evenhand"):
        course, lines = Course(["ingest", "mediate"], [1.0, 100.0]), Lines(seconds=0.05)
        lines.opened(course)
        course.began(2)
        lines.began()
        course.stepped("generators", 4, 10)
        time.sleep(0.3)
        lines.ended("2 of 2 mediate", "100 rows, 0 refused, 0.3 s")
        lines.closed()
        told = [record.getMessage() for record in caplog.records if record.name == "evenhand.shown"]
        time.sleep(0.15)
    first, *between, last = told
    assert (first, last) == ("2 of 2 mediate begins", "2 of 2 mediate: 100 rows, 0 refused, 0.3 s")
    assert set(between) == {"2 of 2 mediate, 4 of 10, about 2 min left"}
    assert 1 <= len(between) <= 6
    assert len(caplog.records) <= len(told) + 1, "nothing more is said after its end"


SHOWN = """\
import logging, sys, time
from flows.cli.terminal import console; from flows.cli.terminal import show_progress
from tasks.pipeline.progress import course_of; from tasks.pipeline.progress import progress; from tasks.pipeline.progress import stage_began; from tasks.pipeline.progress import stage_ended

show_progress(verbose="--verbose" in sys.argv)
with course_of(["ingest", "mediate"], [1.0, 90.0]):
    stage_began(2)
    with progress(10, "generators for race") as tell:
        for epoch in range(4):
            tell(f"loss {epoch}")
    logging.getLogger("evenhand").info("a note")
    time.sleep(0.8)
    stage_ended("about 100 rows")
console.print("the result")
"""  # noqa: E501


def on_terminal(*words: str, script: str = SHOWN, **variables: str) -> tuple[str, str]:
    """What a process writes to a terminal as standard error, and to a pipe as standard output."""
    end, terminal = pty.openpty()
    kept = {k: v for k, v in environment(None).items() if k not in ("COLUMNS", "NO_COLOR")}
    kept |= {"TERM": "xterm", **variables}
    command = [sys.executable, "-c", script, *words]
    process = subprocess.Popen(
        command, env=kept, cwd=REPOSITORY, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, text=True
    )
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(end, 65536):
            shown += piece
    except OSError:  # the other end is closed: Linux says so with an error
        pass
    os.close(end)
    result, _ = process.communicate(timeout=60)
    assert process.returncode == 0, shown
    return shown.decode(), result


def test_a_terminal_has_one_live_line_and_the_result_goes_to_standard_output() -> None:
    shown, result = on_terminal()
    assert "2 of 2 mediate, 4 of 10, about 1 min left" in shown
    assert "a note" in shown
    assert "loss" not in shown
    assert shown.rstrip().endswith("\x1b[2K") or "\x1b[2K" in shown.rsplit("left", 1)[1], "the line goes at the end"
    assert result == "the result\n"


def test_losses_are_for_those_who_ask() -> None:
    shown, _ = on_terminal("--verbose")
    assert "generators for race 4 of 10: loss 3" in shown
    assert "2 of 2 mediate: about 100 rows" in shown


@pytest.mark.parametrize("forced", [{}, {"FORCE_COLOR": "1"}])
def test_a_pipe_has_no_colour_and_no_escape_even_if_forced(forced: dict[str, str], tmp_path: Path) -> None:
    script = f"{SHOWN}\nconsole.print('[red]no[/red]', markup=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment(None), **forced},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr.splitlines() == ["2 of 2 mediate begins", "a note", "2 of 2 mediate: about 100 rows"]


def test_a_terminal_that_rewrites_nothing_gets_lines() -> None:
    shown, _ = on_terminal(TERM="dumb")
    assert "2 of 2 mediate begins" in shown
    assert "left" not in shown


def test_without_colour_a_state_keeps_its_words() -> None:
    red = "from rich.text import Text\nfrom flows.cli.terminal import errors\n"
    red += "errors.print(Text('Outside the limit', style='red'))"
    assert "\x1b[31mOutside the limit" in on_terminal(script=red)[0]
    assert on_terminal(script=red, NO_COLOR="1")[0].strip() == "Outside the limit"


HOSTILE = "Black\x1b[2J\x1b]0;title\x07\x9b31m\u202egnihton\u2066\x7f\r"


def test_no_text_of_the_data_works_the_terminal() -> None:
    """Neither as a text, nor as a cell, nor in a log line; on a terminal and in a pipe."""
    for terminal in (True, False):
        out = io.StringIO()
        on = PlainConsole(file=out, force_terminal=terminal, color_system=None, width=300)
        on.print(HOSTILE, markup=False)
        on.print(Text(HOSTILE))
        print_table(on, ["group"], [[Text(HOSTILE)]])
        said = out.getvalue()
        assert said.count(r"Black\x1b[2J") == 3
        assert not {letter for letter in said if not letter.isprintable()} - {"\n", "\t"}


@given(st.text())
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    if text.isprintable():
        assert shown == text


def test_a_log_line_is_made_visible(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("evenhand")
    before = log.handlers, log.propagate, log.level
    try:
        show_progress()
        log.warning("no group %s", HOSTILE)
    finally:
        log.handlers, log.propagate = before[0], before[1]
        log.setLevel(before[2])
    assert "\x1b" not in capsys.readouterr().err


def test_progress_in_a_file_has_stage_time_left_and_what_was_forecast(tmp_path: Path) -> None:
    clock, file = [100.0], tmp_path / "progress.json"
    course = Course(("ingest", "adjust", "report"), (10.0, 600.0, 20.0), clock=lambda: clock[0], beside=True)
    display = ProgressFile(file, 0.01)

    def written(stage: int, lines: str = "") -> dict[str, object]:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            document: dict[str, object] = json.loads(file.read_text()) if file.exists() else {}
            if document.get("stage") == stage and lines in str(document.get("lines")):
                return document
            time.sleep(0.01)
        raise AssertionError(file.read_text())

    display.opened(course)
    assert {name: written(0)[name] for name in ("stages", "left", "passed")} == {"stages": 3, "left": 643, "passed": 0}
    course.began(1)
    clock[0] = 105.0
    assert written(1, "1 of 3 ingest, for ")["forecast"] == 643
    course.ended(1)
    course.began(2)
    assert written(2)["left"] == pytest.approx(623 * 25 / 40)
    course.ended(2)
    course.began(3)
    written(3)
    course.ended(3)
    assert written(3, "the run is published")["left"] is None
    display.closed()
