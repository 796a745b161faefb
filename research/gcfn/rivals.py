"""Systems that GCFN is compared with, and the case studies: income and recidivism."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from research.figures import NOT_RUN, Cell, Curve, Drawing, Spread, Value, curves
from research.gcfn import truth
from research.gcfn.truth import (
    DEFAULT,
    FAIR,
    HELD_OUT,
    SCORE,
    SWEEP,
    TITLES,
    WHOLE_FILE,
    Defendants,
    Earners,
    Run,
    Scored,
    Summary,
)
from tasks.baselines.predictors import FittingSettings, moved_scores
from tasks.baselines.variational import PREDICTORS, Abducting, change_over_last_epochs
from tasks.counterfactuals.algorithm.diagnostics import against_truth
from tasks.counterfactuals.algorithm.gan import training
from tasks.counterfactuals.algorithm.gan.networks import GanSettings
from tasks.methods.gcfn.algorithm.predictors import PredictorSettings, Scales, train
from tasks.metrics.publish.algorithm.populations import complement
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.numerics.arrays import Bools, Floats

# --------------------------------------------------------------------------------------------------------------------
# Trains the systems that the GCFN paper compares itself with, on the rows of one run, and measures them.
#
# Scope: one run. The systems: ``tasks.baselines.predictors``. They never see the true counterfactuals: a row is
# scored again as a member of the other category, with the mediators that it would have there.


log = logging.getLogger("evenhand")


class Imagined(NamedTuple):
    """Counterfactual mediators of an autoencoder on held-out rows, as Table 3 has those of the networks."""

    mse_counterfactual_generated: float
    mse_factual_generated: float
    slope_on_true_noise: float
    elbo_change_over_last_ten_epochs: float
    """As a share of the evidence lower bound."""


HSCIC: Final = "hscic"
HSCIC_SWEEP: Final = (0.1, 1.0, 5.0, 20.0)
"""Of the GCFN paper's grid 0.1, 0.5, 1, 5, 10, 15, 20 (appendix 14.3)."""

HSCIC_EPOCHS: Final = 15
"""Each takes the time of several epochs without the penalty."""


class Rivals(NamedTuple):
    """The systems of one run."""

    summaries: Mapping[str, Summary]
    """By title."""
    imagined: Mapping[str, Imagined]
    """Of the systems that imagine mediators, by title."""


def compared(run: Run, names: Sequence[str]) -> Rivals:
    """Trains the systems of these names, HSCIC for each weight, and measures them."""
    test_rows = run.test.mediation()
    generated = run.generators[DEFAULT].imagine(test_rows)
    summaries, imagined = {}, {}
    for name in names:
        variants = {TITLES[name]: FittingSettings(seed=run.seed)}
        if name == HSCIC:
            variants = {
                hscic_title(weight): FittingSettings(epochs=HSCIC_EPOCHS, fairness=weight, seed=run.seed)
                for weight in HSCIC_SWEEP
            }
        for title, settings in variants.items():
            model = PREDICTORS[name](run.train.mediation(), run.train.favourable, settings)
            truly = moved_scores(model, test_rows, run.test.potential[None])
            scored = Scored(model.scores(test_rows), truly, moved_scores(model, test_rows, generated))
            summaries[title] = scored.summary(run.test.favourable)
            if isinstance(model, Abducting):
                comparison = against_truth(model.imagine(test_rows), test_rows, run.test.potential, run.test.mean)
                errors = float(comparison.counterfactual_generated.mean()), float(comparison.factual_generated.mean())
                slope = float(comparison.slope.mean())
                imagined[title] = Imagined(*errors, slope, change_over_last_epochs(model.history))
        log.info("run %d: %s trained", run.seed + 1, TITLES[name])
    return Rivals(summaries, imagined)


def cells(several: Sequence[Rivals]) -> Mapping[Cell, Value]:
    """Returns cells on the mediators that systems generate and on their training: means over runs."""
    values: dict[Cell, Value] = {}
    for title in several[0].imagined:
        means = np.mean([rival.imagined[title] for rival in several], axis=0)
        values |= {Cell(name, title): float(value) for name, value in zip(Imagined._fields, means, strict=True)}
    return values


def hscic_title(weight: float) -> str:
    """The row of HSCIC with a weight of its penalty."""
    return f"{TITLES[HSCIC]}, lambda {weight:g}"


# --------------------------------------------------------------------------------------------------------------------
# Compares models by accuracy, CF and utility over runs: the paper's Figures 3 and 10 to 13, and the requirements on
# them.
#
# The paper draws utilities and prints none. So the verdicts are on directions, and on the figures of a trial with the
# quantile map in the place of the networks.


GAMMAS: Final = tuple(round(0.1 * step, 1) for step in range(1, 11))
SHOWN_GAMMAS: Final = (0.1, 0.5, 1.0)

FROM, TO = (next(variant.name for variant in SWEEP if variant.fairness == value) for value in (0.0, 0.5))
"""Between these the paper says in which direction accuracy and CF go."""

FEWEST_RUNS: Final = 3
"""Fewer say too little of a mean utility: on 2,000 rows its standard deviation is 0.009."""
TOO_FEW: Final = f"{NOT_RUN}: fewer than {FEWEST_RUNS} runs"

FALLS, FALLS_NOT, RISES, RISES_NOT = "falls", "does not fall", "rises", "does not rise"
STEADILY, UNSTEADILY = "falls at every step", "does not fall at every step"

Runs = Sequence[Mapping[str, Summary]]
"""For each run its models by name, the same in all."""


def means(several: Runs) -> Mapping[str, Summary]:
    """Means over runs by model."""
    return {name: Summary(*np.mean([run[name] for run in several], axis=0)) for name in several[0]}


def utilities_cells(several: Runs) -> Mapping[Cell, Value]:
    """Returns the figures of each model, means over runs, the directions, and GCFN compared with the others."""
    run_means = means(several)
    values: dict[Cell, Value] = {}
    for name, mean in run_means.items():
        values |= {Cell(quantity, name): float(value) for quantity, value in mean._asdict().items()}
        values |= {Cell(f"utility_gamma_{gamma:g}", name): mean.utility(gamma) for gamma in SHOWN_GAMMAS}
        values[Cell("mean_utility", name)] = mean.mean_utility if len(several) >= FEWEST_RUNS else TOO_FEW
        if len(several) > 1:
            values[Cell("mean_utility_sd", name)] = _sd(several, name)
    values[Cell("largest_mean_utility", "all models")] = max(run_means, key=lambda name: run_means[name].mean_utility)
    return {**values, **directions(run_means, len(several)), **dict(_beside_others(several, run_means))}


def directions(run_means: Mapping[str, Summary], runs: int) -> Mapping[Cell, Value]:
    """Returns which way accuracy, CF and mean utility go with lambda: in words, since the paper gives no figure."""
    values: dict[Cell, Value] = {}
    for quantity in ("accuracy", "cf_true"):
        change = getattr(run_means[TO], quantity) - getattr(run_means[FROM], quantity)
        values[Cell(f"{quantity}_from_lambda_0_to_0.5", FAIR)] = FALLS if change < 0 else FALLS_NOT
    better = run_means[TO].mean_utility > run_means[FROM].mean_utility
    risen = RISES if better else RISES_NOT
    values[Cell("mean_utility_from_lambda_0_to_0.5", FAIR)] = risen if runs >= FEWEST_RUNS else TOO_FEW
    values[Cell("cf_true_along_lambda", FAIR)] = _steadily([run_means[variant.name].cf_true for variant in SWEEP])
    swept = [hscic_title(weight) for weight in HSCIC_SWEEP]
    along = _steadily([run_means[name].cf_true for name in swept]) if swept[0] in run_means else NOT_RUN
    return {**values, Cell("cf_true_along_lambda", TITLES["hscic"]): along}


def drawings(several: Runs, figures: tuple[str, str]) -> tuple[Drawing, ...]:
    """Draws utility by gamma and mean utility by lambda.

    Args:
        several: The runs.
        figures: The paper's numbers of the two drawings.
    """
    run_means = means(several)
    # models without a weight, and of GCFN and HSCIC those of the weights 0, 0.5 and 5
    titles = [name for name in (FROM, TO, hscic_title(5.0), *TITLES.values()) if name in run_means]
    by_gamma = {name: [run_means[name].utility(gamma) for gamma in GAMMAS] for name in titles}
    title = "Utility of each predictor, mean over runs"
    gammas = Drawing("utility-by-gamma", figures[0], title, "gamma", "accuracy - gamma CF", curves(GAMMAS, by_gamma))
    weights = [variant.fairness for variant in SWEEP]
    along = np.array([run_means[variant.name].mean_utility for variant in SWEEP])
    spread = np.array([_sd(several, variant.name) for variant in SWEEP])
    flat = {name: [run_means[name].mean_utility] * len(weights) for name in TITLES.values() if name in run_means}
    bands = {FAIR: along, "GCFN less one sd": along - spread, "GCFN plus one sd": along + spread}
    series = {name: values.tolist() for name, values in bands.items()}
    title = "Mean utility over ten gamma by lambda; the others have no lambda"
    lines = curves(weights, {**series, **flat})
    return (gammas, Drawing("mean-utility-by-lambda", figures[1], title, "lambda", "mean utility", lines))


def _beside_others(several: Runs, run_means: Mapping[str, Summary]) -> Iterator[tuple[Cell, Value]]:
    """How far GCFN's mean utility at lambda 0.5 is above each of the others', and whether it is not below by an sd."""
    gcfn, own_sd = run_means[TO].mean_utility, _sd(several, TO)
    for name in TITLES.values():
        # the model of the system with the largest mean utility
        models = [model for model in run_means if model.split(", ")[0] == name]
        best = max(models, key=lambda model: run_means[model].mean_utility, default=None)
        if best is None:
            yield Cell("mean_utility_above", f"GCFN over {name}"), NOT_RUN
            yield Cell("mean_utility_below_by_more_than_one_sd", f"GCFN under {name}"), NOT_RUN
            continue
        yield Cell("mean_utility_above", f"GCFN over {name}"), gcfn - run_means[best].mean_utility
        below = run_means[best].mean_utility - gcfn > max(own_sd, _sd(several, best))
        answer = ("yes" if below else "no") if len(several) >= FEWEST_RUNS else TOO_FEW
        yield Cell("mean_utility_below_by_more_than_one_sd", f"GCFN under {name}"), answer


def _sd(several: Runs, name: str) -> float:
    """Standard deviation of the mean utility over runs, as the paper's figures have it; NaN of a single run."""
    values = [run[name].mean_utility for run in several]
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def _steadily(values: Sequence[float]) -> str:
    return STEADILY if all(after < before for before, after in pairwise(values)) else UNSTEADILY


# --------------------------------------------------------------------------------------------------------------------
# Scores of women and men of Adult by the weight of the regularisation: the paper's Figures 4, 5 and 14 to 17.
#
# One fifth of the rows is held out of one training. The true counterfactuals are not known: CF is by the worst
# generator. The paper draws densities and prints none. One number represents two of them: the area between the curves,
# 0 where they are the same and 2 where they do not overlap.


DENSITIES: Final = (0.0, 0.5, 1.0, 5.0, 10.0, 100.0, 500.0, 1000.0)
"""Weights of Figures 4 and 14 to 17."""
TRADED: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of Figure 5, which goes from 0 to 1."""

BINS: Final = 25
"""Even intervals of the score from 0 to 1."""

NO_MORE: Final = 0.005
"""By which an accuracy that stays may rise: the standard error on 9,000 rows is 0.004."""
STAYS, STAYS_NOT = "falls or stays", "rises"


class IncomesScored(NamedTuple):
    """Held-out rows under one weight."""

    accuracy: float
    cf: float
    """By the worst generator."""
    women: Floats
    """Scores of the women."""
    men: Floats

    @property
    def area(self) -> float:
        """Between the two densities."""
        return float(np.abs(density(self.women) - density(self.men)).sum() / BINS)


def obtained(people: Earners, size: GanSettings, rows: int) -> tuple[dict[Cell, Value], tuple[Drawing, ...]]:
    """Returns all cells and drawings of Adult.

    Args:
        people: Everybody.
        size: How many networks are trained, and for how many epochs.
        rows: Most training rows of a predictor.
    """
    by_weight = scored(people, size, rows)
    return incomes_cells(by_weight), incomes_drawings(by_weight)


def scored(people: Earners, size: GanSettings, rows: int) -> Mapping[float, IncomesScored]:
    """Trains networks, and a predictor for each weight; scores of the held-out rows by weight."""
    order = np.random.default_rng(size.seed).permutation(len(people.rich))
    cut = round(HELD_OUT * len(order))
    test_rows, fitted = order[:cut], order[cut:]
    imaginer = training.train(people.mediation.rows(fitted), size).imaginer
    log.info("adult: %d networks trained", size.networks)
    scales, some = Scales.of(people.mediation.rows(fitted)), fitted[:rows]
    learnt, test = (
        scales.applicants(people.mediation.rows(part), imaginer.imagine(people.mediation.rows(part)), people.rich[part])
        for part in (some, test_rows)
    )
    by_weight = {}
    for weight in sorted({*DENSITIES, *TRADED}):
        settings = PredictorSettings(device="cpu", seed=size.seed, fairness=weight)
        women = people.women[test_rows]
        model = train(learnt, settings)
        scores = model.scores(test)
        by_weight[weight] = IncomesScored(
            float(((scores >= 0.5) == test.label).mean()),
            float(truth.unfairness(scores, model.imagined_scores(test)).max()),
            scores[women],
            scores[~women],
        )
        log.info("adult: predictor of lambda %g trained", weight)
    return by_weight


def incomes_cells(by_weight: Mapping[float, IncomesScored]) -> dict[Cell, Value]:
    """Returns accuracy, CF and the area between the densities by weight, and which way they go."""
    values: dict[Cell, Value] = {}
    for weight, scores in by_weight.items():
        name = f"{FAIR}, lambda {weight:g}"
        values[Cell("accuracy", name)], values[Cell("cf_worst_generated", name)] = scores.accuracy, scores.cf
        values[Cell("area_between_densities", name)] = scores.area
        values[Cell("mean_score_difference", name)] = float(scores.men.mean() - scores.women.mean())
    first, last = by_weight[TRADED[0]], by_weight[TRADED[-1]]
    stays = last.accuracy - first.accuracy <= NO_MORE
    values[Cell("accuracy_from_lambda_0_to_1", FAIR)] = STAYS if stays else STAYS_NOT
    values[Cell("cf_worst_generated_from_lambda_0_to_1", FAIR)] = FALLS if last.cf < first.cf else FALLS_NOT
    steady = all(by_weight[after].area < by_weight[before].area for before, after in pairwise(DENSITIES))
    values[Cell("area_between_densities_along_lambda", FAIR)] = STEADILY if steady else UNSTEADILY
    falls = by_weight[DENSITIES[-1]].area < by_weight[DENSITIES[0]].area
    values[Cell("area_between_densities_from_lambda_0_to_1000", FAIR)] = FALLS if falls else FALLS_NOT
    return values


def incomes_drawings(by_weight: Mapping[float, IncomesScored]) -> tuple[Drawing, ...]:
    """Draws the densities of both sexes at each weight, and accuracy and CF from 0 to 1."""
    middles = tuple((np.arange(BINS) + 0.5) / BINS)
    by_sex = tuple(
        Curve(f"{sex}, lambda {weight:g}", middles, tuple(density(getattr(by_weight[weight], sex)).tolist()))
        for weight in DENSITIES
        for sex in ("women", "men")
    )
    title = "Density of the score of women and men"
    density_drawing = Drawing("score-densities-by-lambda", "Figures 4 and 14 to 17", title, "score", "density", by_sex)
    traded = {
        "accuracy": [by_weight[weight].accuracy for weight in TRADED],
        "CF by the worst network": [by_weight[weight].cf for weight in TRADED],
    }
    title = "Accuracy and CF on held-out rows"
    tradeoff = Drawing("accuracy-and-cf-by-lambda", "Figure 5", title, "lambda", "accuracy; CF", curves(TRADED, traded))
    return density_drawing, tradeoff


def density(scores: Floats) -> Floats:
    """``(BINS,)`` density of scores between 0 and 1, which integrates to 1."""
    return np.histogram(scores, bins=BINS, range=(0.0, 1.0))[0] * BINS / len(scores)


# --------------------------------------------------------------------------------------------------------------------
# Compares the COMPAS score with a predictor that is trained to be fair: rates, and who is treated differently.
#
# Fairness is between Black and white defendants. Each of five parts of the rows is held out of one training. Rates are
# of Black defendants, as the paper's Table 2; a positive is a defendant who is foretold to be charged anew.


PARTS: Final = 5
HIGH_RISK: Final = 5
"""Decile from which the score is read as foretelling a new charge."""

PRIORS: Final = (0, 1, 2, 3, 5, 10)
"""First of each range of prior offences; there are few people with each of the higher counts."""

WITHHELD: Final = "withheld"
SMALLEST: Final = POLICIES["public"].smallest
"""Smallest count of people that is published."""

DRAWN: Final = (
    *(("Black", by, "Figure 6") for by in ("score", "priors from")),
    *(("white", by, "Figure 18") for by in ("score", "priors from")),
)
"""Race, what people are sorted by, and the paper's figure."""

_RATES: Final = ("accuracy", "ppv", "fpr", "fnr")


def recidivism_obtained(
    people: Defendants, size: GanSettings, seeds: int
) -> tuple[dict[Cell, Value], tuple[Drawing, ...], dict[Cell, Spread]]:
    """Returns all cells of COMPAS, Figures 6 and 18, and the spread of rates over parts of the rows."""
    values, spreads = recidivism_cells(people, size, seeds)
    return values, recidivism_drawings(values), spreads


def recidivism_cells(people: Defendants, size: GanSettings, seeds: int) -> tuple[dict[Cell, Value], dict[Cell, Spread]]:
    """Returns all cells of COMPAS, and the spread of rates over parts of the rows.

    Args:
        people: Everybody.
        size: How many networks are trained, and for how many epochs.
        seeds: Of the five parts, how many are held out in turn.
    """
    high = people.score >= HIGH_RISK
    values, spreads = _rates([people.black], people, high, SCORE + WHOLE_FILE)
    parts = np.array_split(np.random.default_rng(0).permutation(len(people.score)), PARTS)[:seeds]
    foretold = high.copy()
    for number, part in enumerate(parts):
        fitted = np.setdiff1d(np.arange(len(people.score)), part)
        training_rows, held_out = people.mediation.rows(fitted), people.mediation.rows(part)
        imaginer, scales = training.train(training_rows, replace(size, seed=number)).imaginer, Scales.of(training_rows)
        learnt = scales.applicants(training_rows, imaginer.imagine(training_rows), people.offended[fitted])
        predictor = train(learnt, PredictorSettings(device="cpu", seed=number))
        test = scales.applicants(held_out, imaginer.imagine(held_out), people.offended[part])
        foretold[part] = predictor.scores(test) >= 0.5
        log.info("part %d of %d held out: networks and predictor trained", number + 1, len(parts))
    members = [np.isin(np.arange(len(high)), part) & people.black for part in parts]
    for decided, name in ((high, SCORE), (foretold, FAIR)):
        means, deviations = _rates(members, people, decided, name)
        values |= means
        spreads |= deviations
    test_rows = np.concatenate(parts)
    for race, of in (("Black", people.black[test_rows]), ("white", ~people.black[test_rows])):
        rows = test_rows[of]
        values |= dict(_differently(f"{race}, score", people.score[rows], high[rows], foretold[rows]))
        first = np.array(PRIORS)[np.searchsorted(PRIORS, people.priors[rows], side="right") - 1]
        values |= dict(_differently(f"{race}, priors from", first.astype(float), high[rows], foretold[rows]))
    return values, spreads


def recidivism_drawings(values: Mapping[Cell, Value]) -> tuple[Drawing, ...]:
    """Draws how many defendants are treated differently, by score and by priors; what is withheld has no value."""
    return tuple(_drawing(values, *figure) for figure in DRAWN)


def _drawing(values: Mapping[Cell, Value], race: str, by: str, figure: str) -> Drawing:
    group = f"{race}, {by}"
    shares = {
        cell.group[len(group) + 1 :]: str(value) for cell, value in values.items() if cell.group.startswith(group)
    }
    places = tuple(float(place) for place in shares)
    counts = tuple(float(text.split()[0]) if text != WITHHELD else np.nan for text in shares.values())
    of = tuple(float(text.split()[-1]) if text != WITHHELD else np.nan for text in shares.values())
    name = f"treated-differently-{race.lower()}-{by.split()[0]}"
    title = f"{race} defendants whom the fair predictor treats otherwise than the COMPAS score"
    curves = (Curve("treated differently", places, counts), Curve("all", places, of))
    return Drawing(name, figure, title, "COMPAS score" if by == "score" else by, "defendants", curves)


def _rates(
    several: list[Bools], people: Defendants, positive: Bools, name: str
) -> tuple[dict[Cell, Value], dict[Cell, Spread]]:
    """Means over parts of the rows, and their spread where there is more than one part."""
    rates = [truth.rates(people.offended[of], positive[of]) for of in several]
    by_rate = {Cell(rate, name): [getattr(group_rates, rate) for group_rates in rates] for rate in _RATES}
    means: dict[Cell, Value] = {cell: float(np.mean(values)) for cell, values in by_rate.items()}
    if len(several) < 2:
        return means, {}
    return means, {cell: Spread(float(np.std(v, ddof=1)), len(v)) for cell, v in by_rate.items()}


def _differently(name: str, by: Floats, audited: Bools, fair: Bools) -> Iterator[tuple[Cell, Value]]:
    """How many are treated differently by the score and the predictor, for each value.

    A small number of people, of either treatment, is withheld, with another where its total would tell it.
    """
    values, rows, differing = truth.treated_differently(audited, fair, by)
    counts = np.column_stack([differing, rows - differing, rows])
    few = (counts > 0) & (counts < SMALLEST)
    hidden = few[:, 0] | few[:, 1] | few[:, 2]
    for column in counts.T[:2]:
        hidden = complement(hidden, column, SMALLEST)
    for value, n, count, withheld in zip(values, rows, differing, hidden, strict=True):
        share_text = WITHHELD if withheld else f"{count} of {n}"
        yield Cell("treated_differently", f"{name} {value:.0f}"), share_text
