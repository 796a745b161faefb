"""Completion: words of the lake by the variables that shells set, and a TAB in a real bash and a real zsh."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import in_process
import pytest
from conftest import REPOSITORY, environment
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs

from flows.cli import options

PROGRAM = """#!/bin/sh
exec {python} -c "import sys; sys.argv[0] = 'evenhand'; from flows.cli.__main__ import main; main()" "$@"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a lake, two specs, and the command under its own name."""
    path = tmp_path_factory.mktemp("completion")
    lake_of_runs(path / "lake")
    (path / "lake" / "backfills" / "loans" / "2021").mkdir(parents=True)
    for name in ("loans.yaml", "cards.yml", "loans.csv"):
        (path / name).touch()
    (path / "specs").mkdir()
    (path / "evenhand").write_text(PROGRAM.format(python=sys.executable))
    (path / "evenhand").chmod(0o755)
    return path


def given(place: Path, **more: str) -> dict[str, str]:
    path = f"{place}:{os.environ['PATH']}"
    return {**environment(None), "EVENHAND_LAKE": str(place / "lake"), "PATH": path, **more}


def completed(place: Path, *words: str) -> list[str]:
    """What bash would be offered for the last word."""
    line = {"COMP_WORDS": "\n".join(["evenhand", *words]), "COMP_CWORD": str(len(words))}
    asked = given(place, **line, _EVENHAND_COMPLETE="complete_bash")
    done = in_process.run((), asked, place)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("show", "loans"), {NEW, OLD}),
        (("verify", "c"), {OTHER}),
        (("measures", "--run", "loans-2023-01"), {OLD}),
        (("show", "loans@"), {"loans@2023"}),
        (("runs", "--audit", ""), {"cards", "loans"}),
        (("status", "--years", "202"), {"2021-2024", "2021", "2023", "2024"}),
        (("findings", "--method", "c"), {"cec", "cst"}),
        (("audit", "l"), {"lake/", "loans.yaml"}),
        (("plan", ""), {"lake/", "specs/", "loans.yaml", "cards.yml"}),
        (("r",), {"release", "report", "restatement", "reproduce", "runs", "replay", "review"}),
    ],
    ids=lambda each: " ".join(sorted(each) if isinstance(each, set) else each),
)
def test_words_are_completed(place: Path, words: tuple[str, ...], offered: set[str]) -> None:
    assert set(completed(place, *words)) == offered


def test_measures_and_groups_are_those_of_the_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lake = lake_of_runs(tmp_path / "lake")
    last = options._run_ids(lake.location)[0]
    table = pa.table({"measure": ["b", "a", "b"], "group": ["white", "Black", "Black"]})
    pq.write_table(table, Path(lake.location, "reports", last, "measures.parquet"))
    assert list(options._measures(lake.location, "")) == ["a", "b"]
    assert list(options._groups(lake.location, "")) == ["Black", "white"]


def test_without_a_lake_nothing_is_offered_and_none_is_made(place: Path, tmp_path: Path) -> None:
    asked = {"EVENHAND_LAKE": str(tmp_path / "nowhere"), "COMP_WORDS": "evenhand\nmeasures\n--measure\n"}
    asked |= {"COMP_CWORD": "3", "_EVENHAND_COMPLETE": "complete_bash"}
    done = subprocess.run([place / "evenhand"], env=given(place, **asked), capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(evenhand --show-completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(evenhand --show-completion zsh)"'),
}


@pytest.mark.parametrize("shell", START)
def test_a_tab_completes_the_run_in_a_real_shell(place: Path, shell: str) -> None:
    """The line is completed, then its beginning made an echo, so that the shell tells how it reads."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    command, prepare = START[shell]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        shown = given(
            place, TERM="dumb", PS1="READY ", PROMPT="READY ", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
        )
        os.execvpe(command[0], command, shown)
    try:
        _until(terminal, b"READY")
        os.write(terminal, f"{prepare}; echo PRE''PARED\n".encode())
        _until(terminal, b"PREPARED")
        os.write(terminal, b"evenhand show card\t")
        _until(terminal, OTHER.encode())
        os.write(terminal, b"\x01echo TOLD\n")
        assert f"TOLDevenhand show {OTHER}" in _until(terminal, b"TOLDevenhand show cards-2024-5").decode()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def _until(terminal: int, word: bytes, seconds: float = 60) -> bytes:
    """What the terminal shows until a word stands there and nothing more comes."""
    shown, ends = b"", time.monotonic() + seconds
    while time.monotonic() < ends:
        if select.select([terminal], [], [], 0.3)[0]:
            shown += os.read(terminal, 65536)
        elif word in shown:
            return shown
    raise AssertionError(f"no {word!r} in {shown[-2000:]!r}")
