"""At a terminal the decision is asked for: a number or a name, and Enter alone is no answer."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import unprepared_tables as tables
from conftest import environment

from flows.cli.draft.columns import candidates, given_sides, guessed_sides
from flows.cli.draft.table import read_table


def test_the_decision_and_its_favourable_value_are_asked_for_at_a_terminal(tmp_path: Path) -> None:
    file = tables.south_german(tmp_path)
    shown, typed = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "init", file.name],
        stdin=typed, stderr=typed, stdout=subprocess.PIPE, env=environment(None), cwd=tmp_path,
    ) as running:  # fmt: skip
        os.close(typed)
        os.write(shown, b"\n7000\n1\n1\n")
        out, _ = running.communicate(timeout=120)
    said = os.read(shown, 1 << 16).decode()
    os.close(shown)
    assert running.returncode == 0, said
    assert "Which column is the decision?" in said
    assert "7000: expected 1 to " in said
    assert "column: 'kredit'" in out.decode()
    assert "favourable: [" in out.decode()
    assert not out.startswith(b"\x1b")


def test_the_end_of_the_input_is_no_breach(tmp_path: Path) -> None:
    shown, typed = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "init", tables.south_german(tmp_path).name],
        stdin=typed, stderr=typed, stdout=subprocess.DEVNULL, env=environment(None), cwd=tmp_path,
    ) as running:  # fmt: skip
        os.close(typed)
        os.write(shown, b"\x04")
        assert running.wait(timeout=120) == 2
    assert "no answer; give --decision" in os.read(shown, 1 << 16).decode()
    os.close(shown)


def test_words_tell_the_sides_and_codes_do_not(tmp_path: Path) -> None:
    table = read_table(tables.compas(tmp_path))
    found = {each.column: each for each in candidates(table)}
    assert guessed_sides(found["two_year_recid"]).favourable == ("0",)
    assert guessed_sides(found["c_charge_degree"]) is None
    south = candidates(read_table(tables.south_german(tmp_path)))[0]
    assert guessed_sides(south) is None
    assert given_sides(south, ["1"]).unfavourable == ("0",)
