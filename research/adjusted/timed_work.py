"""Regressions of simulated applications, started by ``evenhand bench adjusted`` in a separate process.

Rows are drawn into a Parquet file once, and every pass of a streamed fit reads it from the start.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from research.adjusted.bench import SCENARIOS, estimate_coverage
from research.adjusted.textbooks import ladder_boston
from research.benchmark import answer, peak_mb, timed
from research.figures import texas_spec
from schemas.audit.limits import SimilarLimits
from schemas.tables.applications import DECISIONS
from tasks.in_memory import tables_through
from tasks.methods.adjusted.adjust.rows import cases, judged
from tasks.methods.adjusted.adjust.settings import adjust_settings
from tasks.methods.adjusted.algorithm.design import Control
from tasks.methods.adjusted.algorithm.examined import Files, Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.algorithm.parts import Split, split_of_number
from tasks.methods.adjusted.algorithm.streamed import Batch, Batches, fit_batches, fit_logit, logit_effects
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Floats

SEED, BATCH = 18, 65_536
GROUPS, CATEGORIES, NUMBERS = 3, 20, 16
"""Columns of 0 and 1 for groups, of 0 and 1 for a category such as the purpose, and of numbers with their squares; with
the intercept 40."""
SHARES = (0.7, 0.15, 0.1, 0.05)
"""Of the reference group, and of the others."""
EFFECTS = (0.5, 0.2, 0.0)
"""Log odds of denial that groups add."""
JUDGED_NUMBERS, JUDGED_CATEGORIES = 26, 4


def generate(file: str, rows: str) -> dict[str, Any]:
    """Draw applications and write them batch by batch."""
    rng = np.random.default_rng(SEED)
    slopes = rng.normal(0, 0.15, CATEGORIES + NUMBERS)
    with timed() as times:
        writer: pq.ParquetWriter | None = None
        for start in range(0, int(rows), BATCH):
            table = drawn(min(BATCH, int(rows) - start), slopes, rng)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer:
            writer.close()
    return {"rows": int(rows), "file_mb": Path(file).stat().st_size / 1e6, **times}


def drawn(rows: int, slopes: Floats, rng: np.random.Generator) -> pa.Table:
    """Some applications: indicators as bytes, numbers as they are, and the decision."""
    group, category = rng.choice(GROUPS + 1, rows, p=SHARES), rng.integers(0, CATEGORIES + 1, rows)
    numbers = rng.normal(0, 1, (rows, NUMBERS // 2)) - 0.3 * (group > 0)[:, None]
    numbers = np.hstack([numbers, numbers**2])
    of = (group[:, None] == np.arange(1, GROUPS + 1), category[:, None] == np.arange(1, CATEGORIES + 1))
    linear = -1.5 + of[0] @ np.array(EFFECTS) + np.hstack([of[1], numbers]) @ slopes
    denied = rng.random(rows) < 1 / (1 + np.exp(-linear))
    flags = np.hstack([denied[:, None], *of]).astype(np.uint8)
    names = ["denied", *(f"flag_{i}" for i in range(flags.shape[1] - 1)), *(f"number_{i}" for i in range(NUMBERS))]
    return pa.table([*flags.T, *numbers.T], names=names)


def streamed(file: str, rows: int | None = None) -> Batches:
    """The rows of a file in batches, with an intercept; the first ``rows`` of them if given."""

    def passed() -> Iterator[Batch]:
        file_rows = pq.ParquetFile(file)
        rows_remaining = file_rows.metadata.num_rows if rows is None else rows
        for group in range(file_rows.num_row_groups):
            if rows_remaining <= 0:
                return
            # one row group at a time: ``iter_batches`` would hold the whole file
            table = file_rows.read_row_group(group).slice(0, rows_remaining).combine_chunks()
            rows_remaining -= table.num_rows
            yield _batch(table)

    return passed


def _batch(table: pa.Table) -> Batch:
    x = np.empty((table.num_rows, table.num_columns), order="F")
    x[:, 0] = 1.0
    for at in range(1, table.num_columns):
        x[:, at] = table.column(at).to_numpy()
    return Batch(table.column(0).to_numpy().astype(np.float64), x)


def linear(file: str, rows: str) -> dict[str, Any]:
    """Least squares with HC1 errors, in two passes."""
    with timed() as times:
        fit = fit_batches(streamed(file, int(rows)))
    effect = {"effect": fit.coefficients[1], "effect_se": fit.se[1]}
    return {
        "rows": int(rows),
        **times,
        "peak_mb": peak_mb(),
        "passes": 2,
        **effect,
        **_estimates(fit.coefficients, fit.hc1),
    }


def logit(file: str, rows: str) -> dict[str, Any]:
    """Logit by streamed Newton, with effects over own members and all rows, and sandwich errors."""
    batches = streamed(file, int(rows))
    with timed() as times:
        fit = fit_logit(batches)
        effects = logit_effects(batches, fit.coefficients, range(1, 1 + GROUPS))
    assert fit.converged, "drawn rows are not separated"  # noqa: S101
    effect = {"effect": effects.over_members[0].value, "effect_se": effects.over_members[0].se}
    return {
        "rows": int(rows),
        **times,
        "peak_mb": peak_mb(),
        "passes": fit.passes + 1,
        **effect,
        **_estimates(fit.coefficients, effects.covariance),
    }


def judged_files(n: int) -> Files:
    """Applications of one group and the reference group with 26 numbers and 4 categories."""
    rng = np.random.default_rng(SEED)
    member, index = rng.random(n) < 0.25, np.full(n, -1.8)
    controls = []
    for place in range(JUDGED_NUMBERS):
        values = rng.standard_normal(n) + (0.2 * member if place < 4 else 0.0)
        index += (0.3 if place < 6 else 0.02) * values
        controls.append(Control(f"number {place}", "number", values))
    for place in range(JUDGED_CATEGORIES):
        code = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1)).astype(np.float64)
        index += 0.1 * code
        controls.append(Control(f"category {place}", "category", code, ("a", "b", "c", "d")))
    numbers, categories = controls[: JUDGED_NUMBERS // 2], controls[JUDGED_NUMBERS:]
    splits = [split_of_number(control.name, control.values) for control in numbers]
    splits += [Split(control.name, control.categories, control.values.astype(np.int32)) for control in categories]
    denied, none = rng.random(n) < 1 / (1 + np.exp(-index)), np.zeros(n, np.bool_)
    groups = "reference", "group"
    return Files(denied, none, member.astype(np.int32), groups, 0, tuple(controls), splits=tuple(splits))


def judged_effect(rows: str) -> dict[str, Any]:
    """The judged effect on one group with parts and carriers, of files that are in memory."""
    files, limits = judged_files(int(rows)), SimilarLimits()
    with timed() as times:
        rules = Rules(LimitRule(limits.points, limits.times, limits.fifth, limits.least))
        (examined,) = examine(files, rules, np.random.default_rng(SEED))
    return {**times, "peak_mb": peak_mb(), "rows": int(rows), "parts": len(examined.parts)}


def family() -> dict[str, Any]:
    """The whole ladder on Boston 1990: all rungs, groups and estimators by the default settings."""
    applications = ladder_boston()
    with timed() as times:
        ladder = climb(applications, AdjustedSettings(), 0.95, np.random.default_rng(SEED))
    return {**times, "peak_mb": peak_mb(), "rows": ladder.used, "effects": len(ladder.effects)}


def coverage(rows: str, repetitions: str) -> dict[str, Any]:
    """Intervals of the logit's own effect in all scenarios of so many rows, by the default form."""
    scenarios = [scenario for scenario in SCENARIOS if scenario.rows == int(rows)]
    with timed() as times:
        coverages = [
            estimate_coverage(scenario, ("logit",), int(repetitions), SEED + place)[0]  # samples of its own
            for place, scenario in enumerate(scenarios)
        ]
    shares = {scenario_coverage.scenario.name: scenario_coverage.covered for scenario_coverage in coverages}
    return {**times, "peak_mb": peak_mb(), "rows": int(rows), "covered": shares}


def texas(data: str) -> dict[str, Any]:
    """The whole ladder on Texas 2022 by its audit spec: all rungs, groups and estimators, by race and by sex."""
    spec = texas_spec(Path(data), {"explain.decision_makers": "[lender]"})
    settings = adjust_settings(spec)
    assert settings is not None, "the spec asks for the ladder"  # noqa: S101
    tables = tables_through(spec, "preprocess")
    case_tables = (tables["applications"], DECISIONS.empty(), tables["memberships"])
    attribute_cases = list(cases(*case_tables, set(), settings))
    with timed() as times:
        ladders = [
            climb(case.applications, judged(settings, case).ladder, settings.level, np.random.default_rng(SEED))
            for case in attribute_cases
        ]
    effects = {case.attribute: len(ladder.effects) for case, ladder in zip(attribute_cases, ladders, strict=True)}
    return {**times, "peak_mb": peak_mb(), "rows": tables["applications"].num_rows, "effects": effects}


def statsmodels_linear(file: str, rows: str) -> dict[str, Any]:
    """The same by statsmodels, on the rows read into memory."""
    from statsmodels.regression.linear_model import OLS

    with timed() as times:
        full_batch = _whole(file, int(rows))
        fit = OLS(full_batch.y, full_batch.x).fit(cov_type="HC1")
        covariance = fit.cov_params()
    return {"rows": int(rows), **times, "peak_mb": peak_mb(), **_estimates(fit.params, covariance)}


def statsmodels_logit(file: str, rows: str) -> dict[str, Any]:
    """The same by statsmodels, on the rows read into memory, and without effects."""
    from statsmodels.discrete.discrete_model import Logit

    with timed() as times:
        full_batch = _whole(file, int(rows))
        fit = Logit(full_batch.y, full_batch.x).fit(disp=0, tol=1e-10, cov_type="HC0")
        covariance = fit.cov_params()
    return {"rows": int(rows), **times, "peak_mb": peak_mb(), **_estimates(fit.params, covariance)}


def _whole(file: str, rows: int) -> Batch:
    return _batch(pq.read_table(file).slice(0, rows).combine_chunks())


def _estimates(coefficients: Floats, covariance: Floats) -> dict[str, Any]:
    """All coefficients and errors, to be held against each other."""
    return {"coefficients": coefficients.tolist(), "errors": np.sqrt(np.diag(covariance)).tolist()}


if __name__ == "__main__":
    with threadpool_limits(1):  # a second thread of linear algebra waits, at full speed, for a core that others use
        answer(generate, linear, logit, judged_effect, family, coverage, texas, statsmodels_linear, statsmodels_logit)
