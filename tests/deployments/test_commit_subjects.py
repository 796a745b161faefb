"""Subjects of commits are short orders in plain words: the hook and CI hold new ones against the same rules."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from conftest import REPOSITORY

SCRIPT = REPOSITORY / ".ci" / "commit_subjects.py"
FIRST_HELD = "630749c"
"""The last commit before the rule."""


@pytest.fixture(scope="module")
def faults():
    spec = spec_from_file_location("commit_subjects", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.faults


@pytest.mark.parametrize(
    "subject", ["Merge report modules", "Draft unknown decision values as CHECK", "x".upper() * 72]
)
def test_plain_orders_pass(subject, faults):
    assert faults(subject) == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("M" * 73, "73 characters"),
        ("merge report modules", "capital"),
        ("The report modules are one", "verb"),
        ("Merged report modules", "verb"),
        ("Tests: the mark stands in its module", "colon"),
        ("Merge report modules; rename the rest", "semicolon"),
        ("Merge report modules.", "full stop"),
    ],
)
def test_riddles_do_not(subject, fault, faults):
    assert any(fault in line for line in faults(subject))


def run(*words, cwd):
    return subprocess.run([sys.executable, str(SCRIPT), *words], cwd=cwd, capture_output=True, text=True, check=False)


def test_the_hook_reads_the_message_that_is_about_to_be_committed(tmp_path: Path):
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("Merge report modules\n\nThe body may say more; as long as it likes.\n")
    assert run(str(message), cwd=tmp_path).returncode == 0
    message.write_text("Merging report modules\n")
    ended = run(str(message), cwd=tmp_path)
    assert (ended.returncode, "'Merging'" in ended.stderr) == (1, True)


def test_commits_since_the_rule_keep_it():
    listed = subprocess.run(["git", "cat-file", "-e", FIRST_HELD], cwd=REPOSITORY, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("a copy without its history has no commits to check")
    ended = run("--since", FIRST_HELD, cwd=REPOSITORY)
    assert ended.returncode == 0, ended.stderr
