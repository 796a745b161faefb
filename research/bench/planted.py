"""Planted lenders for paths to approval, a model's reasons, and its answer with the group exchanged.

Each is drawn again and again as a small table, goes through the product's own stages, and gets its states, which are
counted beside what is true.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from research.benchmark import Bench, Room, Row, against, row
from tasks.in_memory import tables_through
from tasks.pipeline.registry import read_spec

ROWS, REPS = 1_500, 20
"""Applicants of a table, and tables of each kind, where nobody says how many."""
RIGHT = 0.95
"""Share of tables that have a right state."""
OFF = dict.fromkeys(("fgce", "cst", "cec", "gcfn", "raguel"))
PATH = {"methods": {**OFF, "raguel": {"steps": False, "refits": 50}}}
REASONS = {
    "methods": {**OFF, "cec": {"refits": 8, "relabelled_draws": 0, "pairs": "reference"}},
    "verdicts": {"limits": {"model_reasons": 0.05}, "columns_complete": True},
}
EXCHANGED = {"methods": {**OFF, "adjusted": {"estimators": ["logit"]}}}
NUMBER = {"type": "continuous", "constraint": "up", "role": "financial"}
DEBT = {"type": "continuous", "constraint": "down", "role": "financial"}
FIXED = {"type": "continuous", "constraint": "immutable", "role": "financial"}

Draw = Callable[[np.random.Generator, int], pd.DataFrame]
"""Draws a table of so many applicants."""


@dataclass(frozen=True)
class Planted:
    """A lender or a model, what is true of it, and the states that are right."""

    name: str
    theory: str
    draw: Draw
    truth: str
    states: tuple[str, ...]
    settings: dict[str, Any]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    weights: dict[str, float] | None = None
    """Of the rule that is audited; none: a logistic regression is fitted to the decisions."""


def people(rng: np.random.Generator, n: int, worse: float = 0.0, share: float = 0.3) -> pd.DataFrame:
    """Applicants with an income, savings and a debt, standardised."""
    member = rng.random(n) < share
    z = rng.standard_normal((n, 3)) - worse * np.outer(member, [1, 0.5, -0.5])
    return pd.DataFrame({"member": member.astype(int), "income": z[:, 0], "savings": z[:, 1], "debt": z[:, 2]})


def decided(rng: np.random.Generator, frame: pd.DataFrame, index: "pd.Series[float] | None" = None) -> pd.DataFrame:
    """The frame with decisions by a logit of approval."""
    rule = 1.2 + 0.9 * frame["income"] + 0.3 * frame["savings"] - 0.6 * frame["debt"] if index is None else index
    return frame.assign(approved=np.where(rng.random(len(frame)) < expit(rule), "yes", "no"))


def equal(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Groups alike."""
    return decided(rng, people(rng, n))


def worse(by: float) -> Draw:
    """The group's finances worse by so many standard deviations."""
    return lambda rng, n: decided(rng, people(rng, n, by))


def deep(wide: float) -> Draw:
    """As many members denied, each farther from the boundary (above 1) or nearer: their spread differs."""

    def draw(rng: np.random.Generator, n: int) -> pd.DataFrame:
        frame = people(rng, n)
        score = 0.9 * frame["income"] + 0.3 * frame["savings"] - 0.6 * frame["debt"]
        of = frame["member"] == 1
        cut = float(np.quantile(score[~of], 0.25))
        scale = np.where(of, wide, 1.0)
        for name, weight in (("income", 0.9), ("savings", 0.3), ("debt", -0.6)):
            away = (score - cut) * weight / (0.81 + 0.09 + 0.36)
            frame[name] += (scale - 1) * away
        score = 0.9 * frame["income"] + 0.3 * frame["savings"] - 0.6 * frame["debt"]
        return decided(rng, frame, 6 * (score - cut))

    return draw


def by_proxy(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """A fixed column that equals the group in 19 of 20 cases lowers the score by much."""
    frame = people(rng, n)
    frame["branch"] = np.where(rng.random(n) < 0.95, frame["member"], 1 - frame["member"])
    rule = 1.6 + 0.9 * frame["income"] + 0.3 * frame["savings"] - 0.6 * frame["debt"] - 1.5 * frame["branch"]
    return decided(rng, frame, rule)


def two_incomes(split: bool, level: float = 0.0) -> Draw:
    """Wages and business income; the group has its own of the two (``split``), others live by either alike."""

    def draw(rng: np.random.Generator, n: int) -> pd.DataFrame:
        frame = people(rng, n)
        business = frame["member"] == 1 if split else pd.Series(rng.random(n) < 0.3)
        frame["wages"] = np.where(business, 0.0, 2 + frame["income"])
        frame["business"] = np.where(business, 2 + frame["income"], 0.0)
        rule = -0.8 + 0.9 * (frame["wages"] + frame["business"]) + 0.3 * frame["savings"] - 0.6 * frame["debt"]
        return decided(rng, frame, rule + level * frame["member"])

    return draw


def with_branch(same: float) -> Draw:
    """A column that equals the group as often as ``same``."""

    def draw(rng: np.random.Generator, n: int) -> pd.DataFrame:
        frame = equal(rng, n)
        return frame.assign(branch=np.where(rng.random(n) < same, frame["member"], 1 - frame["member"]))

    return draw


RULE = {"income": 0.9, "savings": 0.3, "debt": -0.6}
BRANCH = {"branch": FIXED}
TWO = {"wages": NUMBER, "business": NUMBER, "savings": NUMBER, "debt": DEBT}
LENGTH, REASON, ALIKE = "path_to_approval", "model_reasons", "similar_applicants"
OPEN, INSIDE, BEYOND, IDLE = "inconclusive", "within", "outside", "not_run"
MODELS = (
    Planted("groups alike", LENGTH, equal, "ratio 1", (INSIDE, OPEN), PATH),
    Planted("finances worse by 0.6", LENGTH, worse(0.6), "ratio 0.76", (OPEN, BEYOND), PATH),
    Planted("denied 2.5 times as deep, equal rates", LENGTH, deep(2.5), "ratio 0.4", (BEYOND,), PATH),
    Planted("denied half as deep, equal rates", LENGTH, deep(0.5), "ratio 2", (INSIDE,), PATH),
    Planted("a proxy lowers the score", LENGTH, by_proxy, "ratio about 0.6", (BEYOND,), PATH, BRANCH),
    Planted("groups alike", REASON, equal, "same reasons", (INSIDE, OPEN), REASONS),
    Planted("finances worse by 0.6", REASON, worse(0.6), "same rule", (INSIDE, OPEN), REASONS),
    Planted(  # nobody of the other group is comparable
        "own kind of income, equal rates", REASON, two_incomes(split=True), "other reasons", (OPEN,), REASONS, TWO
    ),
    Planted("either kind alike", REASON, two_incomes(split=False), "same reasons", (INSIDE, OPEN), REASONS, TWO),
    Planted("a proxy lowers the score", REASON, by_proxy, "other reasons", (BEYOND, OPEN), REASONS, BRANCH),
    Planted("takes 1.0 off", ALIKE, equal, "some 15 points", (BEYOND,), EXCHANGED, {}, RULE | {"member": -1.0}),
    Planted("takes 0.01 off", ALIKE, equal, "below 2 points", (INSIDE, OPEN), EXCHANGED, {}, RULE | {"member": -0.01}),
    Planted("adds 1.0", ALIKE, equal, "favours", (INSIDE,), EXCHANGED, {}, RULE | {"member": 1.0}),
    Planted("does not take it", ALIKE, equal, "not asked", (IDLE,), EXCHANGED, {}, RULE),
    Planted(
        "takes a column that is the group as well", ALIKE, with_branch(1.0), "hidden in the other",
        (OPEN, IDLE), EXCHANGED, BRANCH, RULE | {"member": -0.01, "branch": -1.0},
    ),
    Planted(
        "takes a column that tells 97 of 100", ALIKE, with_branch(0.97), "hidden in the other",
        (OPEN, IDLE), EXCHANGED, BRANCH, RULE | {"member": -0.01, "branch": -1.0},
    ),
)  # fmt: skip


def state(planted: Planted, seed: int, n: int = ROWS) -> tuple[str, str]:
    """The state of the theory of one draw, and its group's numbers in words."""
    frame = planted.draw(np.random.default_rng([5, MODELS.index(planted), seed]), n)
    columns = {"income": NUMBER, "savings": NUMBER, "debt": DEBT} | planted.columns
    columns = {name: kind for name, kind in columns.items() if "wages" not in planted.columns or name != "income"}
    model: dict[str, Any] = {"kind": "logistic_regression", "folds": 3, "refits": 0}
    if planted.weights is not None:
        columns["member"] = {"type": "continuous", "constraint": "immutable"}
        limit = float(np.quantile(frame[list(planted.weights)] @ pd.Series(planted.weights), 0.3))
        model = {"kind": "rule", "rule": {"weights": planted.weights, "limit": limit}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.reset_index(names="id").to_csv(path, index=False)
        spec: dict[str, Any] = {
            "name": "planted",
            "year": 2025,
            "source": {"kind": "csv", "path": str(path)},
            "row_id": "id",
            "decision": {"column": "approved", "favourable": ["yes"], "unfavourable": ["no"]},
            "protected": [
                {"name": "group", "columns": ["member"], "groups": {"A": ["0"], "B": ["1"]}, "reference": "A"}
            ],
            "columns": columns,
            "model": model,
            "leakage": {"allow": [name for name in columns if name != "member"]},
            "verdicts": {"columns_complete": True},
            "explain": {"decision_makers": ["model"]},
            "bootstrap": {"draws": 100},
            "seed": seed,
        }
        tables = tables_through(read_spec(json.dumps(spec | planted.settings), "planted.yaml", {}).spec, "measure")
    rows = [row for row in tables["verdicts"].to_pylist() if row["theory"] == planted.theory]
    theory = next((row for row in rows if row["role"] == "theory"), {"state": "no row", "reason": ""})
    of_group = next((row for row in rows if row["role"] == "primary" and row["value"] is not None), None)
    if of_group is None:
        return theory["state"], theory["reason"]
    ends = [f"{of_group[name]:.2f}" if of_group[name] is not None else "" for name in ("value", "low", "high")]
    return theory["state"], f"{ends[0]} [{ends[1]}, {ends[2]}]"


def line_of(planted: Planted, reps: int, n: int = ROWS) -> Row:
    """The row of a planted model: how often its state was right, and how often each state came."""
    answers = [state(planted, seed, n) for seed in range(reps)]
    states = Counter(answer for answer, _ in answers)
    right = sum(states[right_state] for right_state in planted.states) / reps
    harms = planted.states == (BEYOND,)
    shares = [f"{'power' if harms else 'outside'} {states[BEYOND] / reps:.2f}"]
    shares += [f"{word} {states[word] / reps:.2f}" for word in sorted(states) if word != BEYOND]
    target = against(" or ".join(planted.states), right >= RIGHT)
    words = f"truth: {planted.truth}; {', '.join(shares)}; first {answers[0][1]}"
    return row(f"{planted.theory}: {planted.name}", reps, "state right", ratio=right, **target, found=words)


def _lines(room: Room) -> Iterator[Row]:
    for planted in MODELS:
        yield line_of(planted, room.reps or REPS, room.rows or ROWS)


BENCH = Bench("planted", _lines, repeats=True)
