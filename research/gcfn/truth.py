"""People of the GCFN paper, generators and predictors compared with known counterfactual mediators."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

import numpy as np

from research.figures import Cell, Spread, Value
from schemas.audit.spec import AuditSpec
from schemas.terms import Role
from tasks.counterfactuals.algorithm.conditional import fit_quantiles
from tasks.counterfactuals.algorithm.diagnostics import AgainstTruth, against_truth
from tasks.counterfactuals.algorithm.gan import networks as gan
from tasks.counterfactuals.algorithm.gan.networks import GanSettings
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.in_memory import labelled
from tasks.ingest.synthetic.algorithm.lending import MediatedRows, People
from tasks.methods.gcfn.algorithm.predictors import PredictorSettings, Scales, Variant, sweep
from tasks.methods.gcfn.algorithm.predictors import train as predictors_train
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Mediation

# --------------------------------------------------------------------------------------------------------------------
# Names the rows of the GCFN paper's tables: generators of mediators, and models.


PAPER, DEFAULT, QUANTILES, MEAN = "GAN, paper's settings", "GAN, default settings", "quantile map", "conditional mean"
"""Generators; the last one is what a regression would find with endless data."""

SCORE, FAIR = "COMPAS score", "GCFN"
WHOLE_FILE = ", whole file"
"""Follows the name of the score where it is of all rows, and not of held-out rows."""

TITLES = {
    "cfua": "CFUA",
    "cfan": "CFAN",
    "hscic": "HSCIC",
    "mcevae": "mCEVAE",
    "dcevae": "DCEVAE",
    "advae": "ADVAE",
}
"""The systems that the paper compares itself with, by their names in the registry of baselines."""


# --------------------------------------------------------------------------------------------------------------------
# Reads the law students, defendants and earners of the GCFN paper by the stages of an audit.


@dataclass(frozen=True)
class Earners:
    """People of Adult by sex; all arrays ``(n,)``."""

    mediation: Mediation
    rich: Bools
    """Whether the income is above 50,000 dollars."""
    women: Bools


@dataclass(frozen=True)
class Defendants:
    """Defendants of COMPAS by race; all arrays ``(n,)``."""

    mediation: Mediation
    offended: Bools
    """Whether they were charged again."""
    score: Floats
    """COMPAS score, 1 to 10."""
    priors: Floats
    black: Bools


def defendants(spec: AuditSpec) -> Defendants:
    """Reads the defendants of an audit spec of COMPAS by race."""
    table = labelled(spec)
    columns, category, categories = table.columns, table.grouped.group.astype(np.int64), table.grouped.groups
    covariates, mediators = (_with_role(columns, spec, role) for role in (Role.COVARIATE, Role.MEDIATOR))
    return Defendants(
        Mediation(covariates, category, categories, mediators),
        ~table.label,
        columns.values[:, columns.names.index("decile_score")],
        columns.values[:, columns.names.index("priors_count")],
        category == categories.index("Black"),
    )


def earners(spec: AuditSpec) -> Earners:
    """Reads the people of an audit spec of Adult by sex."""
    table = labelled(spec)
    category, categories = table.grouped.group.astype(np.int64), table.grouped.groups
    covariates, mediators = (_with_role(table.columns, spec, role) for role in (Role.COVARIATE, Role.MEDIATOR))
    mediation = Mediation(covariates, category, categories, mediators)
    return Earners(mediation, table.label, category == categories.index("women"))


def students(spec: AuditSpec) -> People:
    """Reads the law students of an audit spec. Category 1 of the equations is men."""
    table = labelled(spec)
    columns, male = table.columns, table.grouped.groups.index("male")
    resident, white = columns.values[:, [columns.names.index(name) for name in ("resident", "white")]].T
    return People(resident, white, (table.grouped.group == male).astype(np.int64))


def _with_role(columns: Columns, spec: AuditSpec, role: Role) -> Columns:
    at = [place for place, name in enumerate(columns.names) if role in spec.columns[name].role]
    return Columns(
        tuple(columns.names[place] for place in at),
        tuple(columns.kinds[place] for place in at),
        tuple(columns.categories[place] for place in at),
        columns.values[:, at],
    )


# --------------------------------------------------------------------------------------------------------------------
# Measures a model's predictions by category, and how far its scores move between categories (sections 4.3, 5.1).


@dataclass(frozen=True)
class Rates:
    """Rates of decisions on some rows, NaN where a rate has no rows. Positive is the value of the label."""

    accuracy: float
    ppv: float
    """Share of those with the label among those predicted to have it."""
    fpr: float
    """Share predicted to have the label among those without."""
    fnr: float
    """Share predicted not to have it among those with."""


def unfairness(scores: Floats, imagined: Floats) -> Floats:
    """CF = E (h(x, m) - h(x, m_a'))^2 for each generator, ``(s,)``; the worst of them is the paper's number.

    Args:
        scores: ``(n,)`` probabilities.
        imagined: ``(s, k - 1, n)`` those in the other categories, over which the mean is taken (equation 70).
    """
    squared_change: Floats = np.square(imagined - scores).mean(axis=(1, 2))
    return squared_change


def rates(label: Bools, predicted: Bools) -> Rates:
    """Computes rates of predictions ``(n,)`` against labels ``(n,)``."""
    return Rates(
        accuracy=_share(label == predicted),
        ppv=_share(label[predicted]),
        fpr=_share(predicted[~label]),
        fnr=_share(~predicted[label]),
    )


def treated_differently(audited: Bools, fair: Bools, by: Floats) -> tuple[Floats, Longs, Longs]:
    """Counts the decisions that differ between two models, by the value of something (Figures 6 and 18).

    Returns:
        Distinct values ascending, rows with each, and how many of these are decided otherwise.
    """
    values, place = np.unique(by, return_inverse=True)
    n = len(values)
    return values, np.bincount(place, minlength=n), np.bincount(place[audited != fair], minlength=n)


def _share(true: Bools) -> float:
    return float(true.mean()) if len(true) else np.nan


# --------------------------------------------------------------------------------------------------------------------
# Compares generators with known counterfactual mediators: the paper's Table 3, and the slope that it does not have.
#
# Each run draws new data, trains on four fifths of the rows and looks at the rest. Figures are means over runs,
# networks and mediators.


log = logging.getLogger("evenhand")

HELD_OUT: Final = 0.2
"""Of the rows, as in the paper."""

ERROR: Final = "mse_counterfactual_generated"
"""Normalised, as the other one."""


class Generator(Protocol):
    """A generator of counterfactual mediators."""

    def imagine(self, rows: Mediation) -> Floats:
        """Generates mediators ``(s, k, n, p)``."""
        ...


@dataclass(frozen=True)
class Run:
    """One drawing of a data set, and what was trained on its training rows."""

    seed: int
    train: MediatedRows
    test: MediatedRows
    generators: Mapping[str, Generator]

    def at_most(self, rows: int) -> "Run":
        """The same with so many training rows at most; generators keep what they learnt from all."""
        return replace(self, train=self.train.rows(np.arange(min(rows, len(self.train.category)))))


def runs(draw: Callable[[np.random.Generator], MediatedRows], size: GanSettings, seeds: int) -> Iterator[Run]:
    """Trains networks with the default settings and with the paper's, and the quantile map, for each seed.

    Args:
        draw: Draws the data set.
        size: How many networks are trained, and for how many epochs.
        seeds: Number of runs.
    """
    variants = {PAPER: replace(size, **gan.PAPER), DEFAULT: size}
    for seed in range(seeds):
        rows = draw(np.random.default_rng(seed))
        order = np.random.default_rng((seed, 1)).permutation(len(rows.category))
        cut = round(HELD_OUT * len(order))
        fitted = rows.rows(order[cut:])
        generators: dict[str, Generator] = {}
        for name, settings in variants.items():
            generators[name] = train(fitted.mediation(), replace(settings, seed=seed)).imaginer
            log.info("run %d of %d: %s, %d networks trained", seed + 1, seeds, name, settings.networks)
        generators[QUANTILES] = fit_quantiles(fitted.mediation(), seed)
        yield Run(seed, fitted, rows.rows(order[:cut]), generators)


def cells(several: Sequence[Run]) -> Mapping[Cell, Value]:
    """Returns Table 3 and the slopes, by generator."""
    values: dict[Cell, Value] = {}
    for name in several[0].generators:
        comparisons = [against(run, name) for run in several]
        errors, slopes = (
            np.stack([comparison.counterfactual_generated for comparison in comparisons]),
            np.stack([t.slope for t in comparisons]),
        )
        values |= {
            Cell("mse_factual_generated", name): float(
                np.mean([comparison.factual_generated for comparison in comparisons])
            ),
            Cell(ERROR, name): float(errors.mean()),
            Cell("slope_on_true_noise", name): float(slopes.mean()),
            Cell(f"{ERROR}_worst_network", name): float(errors.max()),
            Cell("slope_on_true_noise_worst_network", name): float(slopes.mean(axis=2).min()),
        }
    return values | {Cell(ERROR, MEAN): float(np.mean([comparison.counterfactual_mean for comparison in comparisons]))}


def spreads(several: Sequence[Run]) -> Mapping[Cell, Spread]:
    """Returns the standard deviations of Table 3 over runs, by generator; none of a single run."""
    if len(several) < 2:
        return {}
    spread_of_cell: dict[Cell, Spread] = {}
    for name in several[0].generators:
        comparisons = [against(run, name) for run in several]
        for quantity, values in (
            ("mse_factual_generated", [comparison.factual_generated.mean() for comparison in comparisons]),
            (ERROR, [comparison.counterfactual_generated.mean() for comparison in comparisons]),
        ):
            spread_of_cell[Cell(quantity, name)] = Spread(float(np.std(values, ddof=1)), len(several))
    return spread_of_cell


def against(run: Run, name: str) -> AgainstTruth:
    """Measures one generator on the held-out rows of one run."""
    rows = run.test.mediation()
    return against_truth(run.generators[name].imagine(rows), rows, run.test.potential, run.test.mean)


# --------------------------------------------------------------------------------------------------------------------
# Trains predictors along the sweep of lambda where counterfactual mediators are known, and measures them.
#
# Scope: GCFN's own models on one run. Other systems: ``rivals``. Utilities: ``utilities``. Generators: ``truth``.


SWEEP: Final = sweep()

MEAN_GAMMA: Final = 0.55
"""Mean of the ten weights 0.1, 0.2, ..., 1 of CF in the utility."""


class Summary(NamedTuple):
    """Figures of one model, on held-out rows."""

    accuracy: float
    cf_true: float
    """By the true counterfactuals."""
    cf_worst_generated: float
    """By the worst of the generators, as it would be where the truth is not known."""

    def utility(self, gamma: float) -> float:
        """U = accuracy - gamma CF by the truth (section 5.1)."""
        return self.accuracy - gamma * self.cf_true

    @property
    def mean_utility(self) -> float:
        """Mean of U over gamma 0.1, 0.2, ..., 1 (Figures 11 to 13)."""
        return self.utility(MEAN_GAMMA)


@dataclass(frozen=True)
class Scored:
    """Scores of one model on the ``n`` held-out rows."""

    factual: Floats
    """``(n,)``."""
    truly: Floats
    """``(1, 1, n)`` with the true mediators of the other category."""
    generated: Floats
    """``(s, 1, n)`` with those of each generator."""

    def summary(self, label: Bools) -> Summary:
        """Its figures, by labels ``(n,)``."""
        return Summary(
            float(((self.factual >= 0.5) == label).mean()),
            float(unfairness(self.factual, self.truly).max()),
            float(unfairness(self.factual, self.generated).max()),
        )


def compared(run: Run, variants: tuple[Variant, ...] = SWEEP) -> Mapping[str, Summary]:
    """Trains a model for each weight and measures it."""
    fitted, test_rows, scales = run.train.mediation(), run.test.mediation(), Scales.of(run.train.mediation())
    generator = run.generators[DEFAULT]
    applicants = scales.applicants(fitted, generator.imagine(fitted), run.train.favourable)
    test_applicants = scales.applicants(test_rows, generator.imagine(test_rows), run.test.favourable)
    truly = scales.applicants(test_rows, run.test.potential[None], run.test.favourable)
    summaries = {}
    for variant in variants:
        settings = replace(PredictorSettings(device="cpu", seed=run.seed), fairness=variant.fairness)
        model = predictors_train(applicants, settings)
        scored = Scored(model.scores(truly), model.imagined_scores(truly), model.imagined_scores(test_applicants))
        summaries[variant.name] = scored.summary(run.test.favourable)
    log.info("run %d: %d models compared", run.seed + 1, len(summaries))
    return summaries
