"""Stage alternatives: its register has every candidate with a reason, and a search that was killed goes on."""

import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.in_memory import tables_through
from tasks.lake.store import Lake
from tasks.methods.adjusted.alternatives import stage as of_stage
from tasks.pipeline.registry import read_spec
from tasks.plan import plan, walk

SPEC = """\
name: cards
year: 2024
source: {kind: csv, path: cards.csv}
decision: {column: decision, favourable: [approved], unfavourable: [denied]}
protected:
  - {name: race, columns: [race], reference: white}
columns:
  income: {type: continuous}
  debt: {type: continuous}
  home: {type: nominal}
  branch: {type: binary, order: [0, 1]}
methods:
  {adjusted: {alternatives: {candidates: 24, splits: 2}}, fgce: null, cst: null, cec: null, gcfn: null, raguel: null}
"""


def cards(place: Path, n: int = 1_200) -> AuditSpec:
    rng = np.random.default_rng(4)
    black = rng.random(n) < 0.3
    income, debt = rng.normal(50, 10, n) - 3 * black, rng.normal(30, 8, n)
    branch = (rng.random(n) < 0.3 + 0.5 * black).astype(int)
    odds = 0.1 * (income - 45) - 0.05 * (debt - 30) - 0.3 * branch
    frame = pd.DataFrame(
        {
            "race": np.where(black, "black", "white"),
            "income": income.round(1),
            "debt": debt.round(1),
            "home": rng.choice(["own", "rent", "other"], n),
            "branch": branch,
            "decision": np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "approved", "denied"),
        }
    )
    frame.to_csv(place / "cards.csv", index=False)
    return read_spec(SPEC, "cards.yaml", {"source.path": str(place / "cards.csv")}).spec


def test_the_register_has_every_candidate_with_its_reason(tmp_path: Path) -> None:
    tables = tables_through(cards(tmp_path), "alternatives")
    register, gains = tables["alternatives"].to_pandas(), tables["alternative_gains"].to_pandas()
    assert register["candidate"].tolist() == list(range(25))
    assert (register["reason"] != "").all()
    base = register.iloc[0]
    assert (base["kind"], base["gain"], base["reason"]) == ("base", 0, "base")
    assert set(register["segment"].dropna()) == {"income", "debt", "home", "branch"}
    assert set(register["seed"]) == {482}
    (gain,) = gains.to_dict("records")
    assert gain["eligible"] == register["eligible"][1:].sum()
    assert register[register["chosen"]]["candidate"].tolist() == [gain["chosen"]]
    assert gain["above_zero"] == (gain["low"] > 0)
    assert gain["splits"] == 2
    assert gain["above_zero"] <= gain["splits_above"] <= 2


def searched_in(spec: AuditSpec, lake: Lake) -> dict[str, str]:
    """Runs the stages of the search in a lake, and returns the sha256 of each file that the search wrote."""
    steps = [step for step in plan(spec).steps if step.name in ("ingest", "preprocess", "alternatives")]
    walk(steps, lambda step, inputs: step.stage.run(lake, inputs, step.settings, step.modules))
    files = (lake.root / "stages" / "alternatives").rglob("*.parquet")
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]).parent))
import test_search_stage as of_test
of_test.SPEC = of_test.SPEC.replace('splits: 2', 'splits: 5')
write, left = of_test.of_stage.Scratch.write, [int(sys.argv[3])]
def write_and_die(self, name, content):
    write(self, name, content)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
of_test.of_stage.Scratch.write = write_and_die
place = Path(sys.argv[2])
of_test.searched_in(of_test.cards(place), of_test.Lake(place / "lake"))
"""


@pytest.mark.slow
def test_a_search_over_five_splits_that_was_killed_goes_on_where_it_was_with_equal_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SPEC", SPEC.replace("splits: 2", "splits: 5"))
    spec, lake, numbers = cards(tmp_path), Lake(tmp_path / "lake"), list[int]()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, __file__, str(tmp_path), "7"], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert len(list((lake.root / "unfinished").rglob(of_stage.FILE))) == 1
    from tasks.methods.adjusted.algorithm.alternatives import CandidateSearch

    undisturbed = searched_in(spec, Lake(tmp_path / "other"))
    tried = CandidateSearch.tried

    def counted(self: CandidateSearch, candidate: Any) -> Any:
        numbers.append(candidate.number)
        return tried(self, candidate)

    monkeypatch.setattr(CandidateSearch, "tried", counted)
    assert searched_in(spec, lake) == undisturbed
    assert numbers == [*range(10, 25), *range(25)], "of the fourth split and the fifth: three are whole"
    assert not list((lake.root / "unfinished").rglob(of_stage.FILE))


@pytest.mark.parametrize("kind", ["rule", "net"])
def test_of_a_model_that_cannot_be_fitted_again_no_alternative_is_searched(kind: str) -> None:
    model = "{kind: rule, rule: {weights: {income: 1}, limit: 40}}" if kind == "rule" else "{kind: net}"
    with pytest.raises(SpecError, match="no other can be fitted"):
        read_spec(SPEC, "cards.yaml", {"model": model})
