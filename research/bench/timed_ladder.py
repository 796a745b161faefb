"""The timed work of the benchmark of the ladder: logits of separated decisions, and the ladder of many drawn rows.

Scope: one measurement a process. Runs and targets: ``ladder``.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from research.benchmark import answer, peak_mb, timed
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control, build_design, complete_rows
from tasks.methods.adjusted.algorithm.estimators import PLACE, Rung, linear_rows
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.algorithm.parts import Split, split_of_number
from tasks.methods.adjusted.algorithm.regressions import fit_firth, fit_limit, profile_interval
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.regression import fit_logit

SEED = 46
GROUPS, SHARES = ("reference", "second", "third", "fourth", "fifth"), (0.62, 0.15, 0.12, 0.08, 0.03)
BANDS, STATES, LENDERS = 10, 50, 400
LIMITS = LimitRule(0.02, 0.5, 0.2, 0.005)


def drawn(rows: int, *, separated: bool = False) -> Files:
    """A lender with nine controls, states, some files without income, and some applications without a decision.

    Args:
        rows: Applications.
        separated: Whether the two lowest bands of debt are never denied, and the highest always is.
    """
    rng = np.random.default_rng(SEED)
    group = rng.choice(len(GROUPS), rows, p=SHARES).astype(np.int32)
    amount, income, ltv, debt, term, score = rng.normal(size=(6, rows)) - 0.3 * (group > 0)
    band = np.clip(np.round(3 + 2 * debt), 0, BANDS - 1)
    kinds = {"purpose": 4, "product": 3, "occupancy": 3}
    levels = {name: rng.integers(0, count, rows).astype(np.float64) for name, count in kinds.items()}
    index = -1.6 - 0.4 * income + 0.3 * ltv + 0.6 * debt + 0.25 * (levels["purpose"] == 2) + 0.3 * (group == 1)
    denied = rng.random(rows) < 1 / (1 + np.exp(-index))
    if separated:
        denied = (denied & (band > 1)) | (band == BANDS - 1)
    income_told = np.where(rng.random(rows) < 0.03, np.nan, np.exp(4 + 0.5 * income))
    undecided = rng.random(rows) < 0.06
    controls = (
        Control("amount", "number", np.exp(5 + 0.6 * amount), scale="log"),
        Control("term", "number", np.round(300 + 40 * term)),
        *(Control(name, "category", levels[name], _names(count)) for name, count in kinds.items()),
        Control("income", "number", income_told, scale="log"),
        Control("ltv", "number", 80 + 14 * ltv),
        Control("debt", "category", band, _names(BANDS), ordered=True),
        Control("score", "number", 700 + 50 * score),
    )
    state = rng.integers(0, STATES, rows)
    splits = (
        *(Split(name, _names(count), levels[name].astype(np.int32)) for name, count in kinds.items()),
        *(split_of_number(control.name, control.values) for control in controls if control.kind == "number"),
    )
    places = (Control("state", "category", state.astype(np.float64), _names(STATES)),)
    return Files(denied & ~undecided, undecided, group, GROUPS, 0, controls, places, splits=splits)


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"level {number}" for number in range(count))


def applications_of(files: Files) -> Applications:
    """Decided applications in two blocks, terms and finances."""
    decided = files.taken(~files.undecided)
    blocks = (Block("terms", decided.controls[:5]), Block("finances", decided.controls[5:]))
    return Applications(decided.denied, decided.group, decided.groups, decided.reference, blocks)


def design_of(rows: int, *, separated: bool) -> tuple[Floats, Floats, int]:
    """Columns and decisions of the last rung, and the column of the first group."""
    applications = applications_of(drawn(rows, separated=separated))
    design = build_design(applications, complete_rows(applications), "squared")
    return design.x, design.y, design.indicators[1]


def fit(how: str, rows: str) -> dict[str, Any]:
    """One logit of all groups: ``newton``, at its ``limit``, or ``firth`` with the profile interval of a group."""
    x, y, column = design_of(int(rows), separated=how != "newton")
    with timed() as times:
        if how == "newton":
            passes = fit_logit(x, y).passes
        elif how == "limit":
            limit = fit_limit(x, y)
            passes = 0 if limit is None else limit.fit.passes
        else:
            penalised = fit_firth(x, y)
            passes = penalised.passes + profile_interval(x, y, penalised, column, 0.95).passes
    return {"rows": len(y), "columns": x.shape[1], "passes": passes, **times, "peak_mb": peak_mb()}


def ladder(rows: str) -> dict[str, Any]:
    """All rungs, groups and estimators by the default settings."""
    applications = applications_of(drawn(int(rows)))
    with timed() as times:
        climbed = climb(applications, AdjustedSettings(), 0.95, np.random.default_rng(SEED))
    return {"rows": climbed.used, "effects": len(climbed.effects), **times, "peak_mb": peak_mb()}


def judged(rows: str) -> dict[str, Any]:
    """The judged effect of every group with its parts, files left out, places and carriers."""
    files = drawn(int(rows))
    before = peak_mb()
    with timed() as times:
        results = examine(files, Rules(LIMITS), np.random.default_rng(SEED))
    parts = sum(len(result.parts) for result in results)
    return {"rows": int(rows), "parts": parts, "before_mb": before, **times, "peak_mb": peak_mb()}


def places(rows: str) -> dict[str, Any]:
    """The linear fit with fixed effects of 400 lenders and errors by lender, with the design that it needs."""
    of = applications_of(drawn(int(rows)))
    sizes = np.random.default_rng(SEED).zipf(1.6, len(of.denied)) % LENDERS
    lenders = Control("lender", "category", sizes.astype(np.float64), _names(LENDERS))
    with_places = replace(of, blocks=(*of.blocks, Block(PLACE, (lenders,))), cluster=sizes.astype(np.int32))
    before = peak_mb()
    with timed() as times:
        counted = complete_rows(with_places)
        design = build_design(with_places, counted, "squared", PLACE)
        blocks = tuple(block.name for block in with_places.blocks)
        rung = Rung(len(blocks), blocks, design, 0.95, counted.counts, counted.events, tuple(design.indicators))
        names = tuple(control.name for block in with_places.blocks for control in block.controls)
        effects = linear_rows(rung, names, np.random.default_rng(SEED), bootstrap=False)
    columns = design.widths[-1]
    return {
        "rows": len(design.y),
        "columns": columns,
        "effects": len(effects),
        "before_mb": before,
        **times,
        "peak_mb": peak_mb(),
    }


if __name__ == "__main__":
    with threadpool_limits(1):  # as every stage of an audit has it
        answer(fit, ladder, judged, places)
