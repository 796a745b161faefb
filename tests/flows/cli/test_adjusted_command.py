"""``evenhand adjusted`` as a user runs it: the ladder, its sentence, small groups withheld, and messages."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import evenhand
from loaded_modules import HEAVY, loaded
from published_rows import Told

from tasks.lake.store import Lake
from tasks.methods.adjusted.tables import ADJUSTED, ADJUSTED_BENCHMARKS
from tasks.metrics.publish import facts
from tasks.metrics.publish.algorithm.profiles import POLICIES

WHOSE = {"decision_maker": "lender", "protected_attribute": "race"}
EFFECT = {
    **{"rung": 1, "blocks": "terms", "estimator": "logit", "average_over": "own", "form": "squared", "primary": True},
    **{
        "value": 0.126592,
        "low": 0.060792,
        "high": 0.192391,
        "se": 0.0336,
        "df": None,
        "unseen": None,
        "odds_ratio": 2.476346,
        "n": 197,
    },
    **{
        "events": 64,
        "support": 0.9,
        "rv": None,
        "rv_alpha": None,
        "e_value": 2.66,
        "strongest": None,
        "e_value_near": 1.9,
    },
    **{"adjusted_by_strongest": None, "method": "newton", "reason": ""},
}
LINEAR = {"estimator": "lpm", "average_over": "all", "primary": False, "rv": 0.1172, "strongest": "pubrec"}


def made(place: Path, profile: str, *rows: dict[str, Any]) -> str:
    """A lake of one run with these rows of the ladder."""
    lake = Lake(place)
    effects = [WHOSE | EFFECT | {"group": "Black"} | row for row in rows]
    own = {"column": "pubrec", "column_of_denial": 0.0341, "column_of_group": 0.007}
    bound = {"times": 1, "of_denial": 0.036, "of_group": 0.008, "value": 0.1, "low": 0.0, "high": 0.2}
    benchmark = WHOSE | {"rung": 1, "blocks": "terms", "group": "Black"} | own | bound
    raw = (
        (ADJUSTED, ADJUSTED.build(**{c.name: [row[c.name] for row in effects] for c in ADJUSTED.columns})),
        (ADJUSTED_BENCHMARKS, ADJUSTED_BENCHMARKS.build(**{name: [value] for name, value in benchmark.items()})),
    )
    partition = lake.publish("publish", "0" * 32, facts.tables(raw, Told(POLICIES[profile])), {}, {})
    spec = {"disclosure": {"profile": profile}}
    content = {"partitions": [partition.model_dump(mode="json")], "spec": spec, "run": "first"}
    sealed = content | {"sha256": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}
    lake.write_file("runs/first/manifest.json", json.dumps(sealed).encode())
    return str(place)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    tiny = {"group": "tiny", "n": 3, "events": 1}
    return made(tmp_path / "lake", "public", {}, LINEAR, tiny)


def asked(*words: str) -> list[dict[str, Any]]:
    done = evenhand("adjusted", *words, "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_the_ladder_as_json_has_the_differences_and_withholds_a_small_group(lake: str) -> None:
    own, linear, tiny = asked("first", "--lake", lake)
    assert (own["difference"], own["low"], own["high"], own["n"], own["judged"]) == (-0.127, -0.192, -0.0608, 197, True)
    assert linear["robustness_value"] == 0.117
    assert (own["e_value"], own["e_value_near"]) == (2.66, 1.9)
    assert tiny["reason"] == "withheld: it rests on few people"
    assert {tiny[name] for name in ("difference", "low", "high", "n", "denied", "odds_ratio", "support")} == {None}


@pytest.mark.parametrize(
    ("support", "order"),
    [
        (0.7, ["overlap", "logit", "lpm"]),
        (0.9, ["logit", "lpm", "overlap"]),
        (None, ["logit", "lpm", "overlap"]),
    ],
)
def test_the_overlap_weighted_difference_comes_first_where_support_is_poor(
    tmp_path: Path, support: float | None, order: list[str]
) -> None:
    overlap = {"estimator": "overlap", "average_over": "overlap", "primary": False}
    rows = [row | {"support": support} for row in ({}, LINEAR, overlap)]
    found = asked("--lake", made(tmp_path / "lake", "public", *rows))
    assert [row["estimator"] for row in found] == order


def test_the_terminal_has_the_sentence_under_the_table(lake: str) -> None:
    done = evenhand("adjusted", "--lake", lake, "--group", "Black")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert "-0.1270" in done.stdout
    assert last.startswith("Black, decisions of the lender: It would take a column that explains 11.7")
    assert "the strongest one in the data, pubrec, explains 3.4\N{NO-BREAK SPACE}% and 0.7\N{NO-BREAK SPACE}%." in last


def test_a_strict_profile_rounds(tmp_path: Path) -> None:
    (own,) = asked("--lake", made(tmp_path / "lake", "strict", {}))
    assert (own["difference"], own["n"], own["denied"]) == (-0.127, 195, 65)


def test_an_unknown_group_is_named_with_the_nearest(lake: str) -> None:
    done = evenhand("adjusted", "--lake", lake, "--group", "Blakc")
    assert done.returncode == 2
    assert "no such group; of 'Blakc': did you mean 'Black'?" in done.stderr


def test_a_run_without_the_ladder_says_so(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.write_file("runs/first/manifest.json", json.dumps({"partitions": []}).encode())
    done = evenhand("adjusted", "--lake", str(lake.root))
    assert done.returncode == 2
    assert "this run has no denial ladder" in done.stderr


def test_the_command_loads_nothing_that_computes(lake: str) -> None:
    assert loaded("adjusted", "--lake", lake).isdisjoint({*HEAVY, "statsmodels"})
