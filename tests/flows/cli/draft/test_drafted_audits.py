"""Specs that `init` drafts of generated tables: each audit ends with a verdict or a message, and tells the rates."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from conftest import evenhand, examples
from hypothesis import event, given, settings
from hypothesis import strategies as st

RUN = (0, 1, 3)
"""Exit codes of an audit with a verdict; 3 is that of one that ends before its costly stages, too."""
MESSAGE = (2, 4)
"""Exit codes of a spec or of data that an audit cannot use, each with a message."""
FEATURES = (
    *("number", "whole", "category", "flag", "constant", "missing"),
    *("half", "one_group", "copy", "parting", "text"),
)


@dataclass(frozen=True)
class Drafted:
    """A table to draft a spec of, and what is changed in the draft."""

    rows: int
    groups: int
    favourable: float
    features: tuple[str, ...]
    changes: tuple[str, ...]
    seed: int

    def table(self) -> pd.DataFrame:
        """The table: `id`, `race`, `approved` and a column for each feature."""
        rng, n = np.random.default_rng(self.seed), self.rows
        race = rng.choice(["White", "Black", "Asian"][: self.groups], n)
        approved = np.where(rng.random(n) < self.favourable - 0.3 * (race == "Black"), "yes", "no")
        frame = pd.DataFrame({"id": [f"A{i:04d}" for i in range(n)], "race": race, "approved": approved})
        number = np.round(rng.lognormal(4, 0.5, n), 2)
        columns = {
            "number": number,
            "whole": rng.integers(1, 40, n),
            "category": rng.choice(["a", "b", "c"], n),
            "flag": rng.choice(["on", "off"], n),
            "constant": np.full(n, "same"),
            "missing": np.full(n, ""),
            "half": np.where(rng.random(n) < 0.4, "", number.astype(str)),
            "one_group": np.where(race == "White", "", number.astype(str)),
            "copy": number,
            "parting": number + 1000 * (approved == "yes"),
            "text": [f"v{i % 613}" for i in range(n)],
        }
        return frame.assign(**{f"c_{name}": columns[name] for name in self.features})

    def overrides(self) -> list[str]:
        """The changes as options of the command; a column is excluded as a user would exclude it."""
        excluded = [f"columns.c_{name}.role=excluded" for name in self.features if "excluded" in self.changes]
        limits = ["verdicts.limits=null"] if "no_limits" in self.changes else []
        model = ["model.kind=none"] if "no_model" in self.changes else []
        imputed = ["missing=impute"] if "imputed" in self.changes else []
        folds = ["model.folds=400"] if "many_folds" in self.changes else []
        every = (*excluded, *limits, *model, *imputed, *folds, "disclosure.profile=internal")
        return [option for pair in every for option in ("--set", pair)]


drafted = st.builds(
    Drafted,
    rows=st.sampled_from((300, 300, 150, 150, 60, 20, 5)),
    groups=st.sampled_from((2, 2, 2, 2, 3, 3, 3, 1)),
    favourable=st.sampled_from((0.7, 0.6, 0.8, 0.5, 0.7, 0.6, 0.8, 1.5)),
    features=st.lists(st.sampled_from(FEATURES), max_size=3, unique=True).map(tuple),
    changes=st.lists(st.sampled_from(("excluded", "no_limits", "no_model", "imputed")), unique=True).map(tuple),
    seed=st.integers(0, 2**20),
)


@contextmanager
def audited(case: Drafted, server: str) -> Iterator[tuple[str, int, str, Path]]:
    """Draft a spec and audit it: the command that ended it, its exit code, what it printed, and the lake."""
    with TemporaryDirectory() as folder:
        place, lake = Path(folder), Path(folder) / "lake"
        case.table().to_csv(place / "table.csv", index=False)
        decision = ("--decision", "approved", "--favourable", "yes", "--protected", "race", "-o", "spec.yaml")
        done = evenhand("init", "table.csv", *decision, cwd=place)
        ended = "init"
        if done.returncode == 0:
            options = ("--lake", str(lake), "--jobs", "1", *case.overrides())
            done = evenhand("audit", "spec.yaml", *options, server=server, cwd=place)
            ended = "audit"
        yield ended, done.returncode, done.stdout + done.stderr, lake


def holds(case: Drafted, server: str) -> None:
    """The audit ends as it may, and its rates are those that pandas counts."""
    with audited(case, server) as (ended, code, printed, lake):
        event(f"{ended} ends in {code}")
        assert code in (*RUN, *MESSAGE), printed
        assert not re.search("fault of ours|Traceback", printed), printed
        if code in MESSAGE:
            assert "evenhand: " in printed
        runs = [file.parent for file in lake.glob("reports/*/report.json")]
        assert runs or code not in (0, 1)
        for folder in runs:
            rates_are_counted(case.table(), folder)


def rates_are_counted(frame: pd.DataFrame, folder: Path) -> None:
    """The rates of the lender in the table of measures and on the first page are those of the rows."""
    counted = (frame["approved"] == "yes").groupby(frame["race"]).agg(["mean", "size"])
    measures = pq.read_table(folder / "measures.parquet").to_pandas()
    lender = (measures["measure"] == "approval_rate") & (measures["decision_maker"] == "lender")
    measured = measures[lender].set_index("group")
    assert set(measured.index) == set(counted.index)
    for group, row in counted.iterrows():
        assert measured.loc[group, "value"] == pytest.approx(row["mean"])
        assert measured.loc[group, "n"] == row["size"]
    questions = {row["theory"]: row for row in json.loads((folder / "report.json").read_text())["questions"]}
    sentence = questions["approval_rates"]["sentence"]
    if "complete" not in sentence:
        rates = dict(re.findall(r"(White|Black|Asian) (\d+)\b(?! points?\b)", sentence))
        assert rates, sentence
        for group, rate in rates.items():
            assert abs(int(rate) - 100 * counted.loc[group, "mean"]) <= 0.5


@pytest.mark.slow
@settings(max_examples=4)
@given(drafted)
def test_no_drafted_spec_ends_in_a_fault(server, case):
    holds(case, server)


@pytest.mark.long
@settings(max_examples=examples(40))
@given(drafted)
def test_none_of_some_drafted_specs_ends_in_a_fault(server, case):
    holds(case, server)


@pytest.mark.long
@settings(max_examples=examples(300))
@given(drafted)
def test_none_of_many_drafted_specs_ends_in_a_fault(server, case):
    holds(case, server)


@pytest.mark.parametrize(
    ("features", "changes"),
    [
        ((), ()),
        pytest.param(("number",), ("no_model",), marks=pytest.mark.slow),
        pytest.param(("number",), ("many_folds",), marks=pytest.mark.long),
        pytest.param(("number", "category", "flag"), ("excluded",), marks=pytest.mark.slow),
        (("constant", "missing", "text"), ("imputed",)),
    ],
)
def test_rates_alone_are_an_audit(server, features, changes):
    case = Drafted(rows=300, groups=2, favourable=0.8, features=features, changes=changes, seed=3)
    with audited(case, server) as (ended, code, printed, lake):
        assert (ended, code) == ("audit", 1), printed
        [folder] = [file.parent for file in lake.glob("reports/*/report.json")]
        rates_are_counted(case.table(), folder)
        report = json.loads((folder / "report.json").read_text())
        states = {row["theory"]: row["state"] for row in report["questions"]}
        assert states["approval_rates"] == "outside"
        if "many_folds" in changes:
            assert "no model is audited: complete rows of one decision are too few to fit it" in printed
        if "excluded" in changes or features != ("number",):
            assert states["similar_applicants"] == "not_run"
            assert "Not run: adjusted (the spec has no feature)" in " ".join(printed.split())
            direct = next(row for row in report["questions"] if row["theory"] == "similar_applicants")
            assert direct["sentence"] == "The spec has no feature."
