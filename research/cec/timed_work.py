"""Times CEC on prepared rows; ``evenhand bench cec`` starts it in a separate process.

Nets are trained, held-out pairs scored and drawn rows matched here, so that the process's peak memory is that of the
work. Numba's kernels are compiled, or loaded from its cache, on few rows before anything is timed.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from research.benchmark import answer, device, peak_mb, sampled, timed
from tasks.counterfactuals.algorithm import nearest
from tasks.counterfactuals.algorithm.nearest import Matching
from tasks.methods.cec.algorithm import mitigations
from tasks.methods.cec.algorithm.mitigations import Fold, Population
from tasks.methods.cec.algorithm.models import Bridge, Lending, summary
from tasks.numerics.networks import training
from tasks.numerics.networks.network import PAPER, TrainingSettings
from tasks.numerics.networks.training import TrainingRows, train

FOLDS, WARM_ROWS, REPETITIONS = 5, 640, 7

DEFAULT = TrainingSettings(device="cpu")
VARIANTS = {
    "plain": replace(DEFAULT, lambda_eo=0.0, lambda_cec=0.0),
    "default": DEFAULT,
    "paper": replace(DEFAULT, **PAPER),
    "paper, double backward": replace(DEFAULT, **PAPER),
}
"""What is trained: by prediction alone, by all three losses, and by these with T = 32 and all pairs of a batch."""


def some(rows: Lending, most: int) -> Lending:
    """Returns the rows, or so many drawn from them."""
    people, sampled_rows = rows.population, sampled(len(rows.financial), most)
    sampled_population = Population(
        people.features[sampled_rows], people.favourable[sampled_rows], people.protected[sampled_rows]
    )
    return replace(rows, population=sampled_population, financial=rows.financial[sampled_rows])


def epoch(lending: Lending, variant: str, rows: str, device: str) -> dict[str, Any]:
    """Returns the least time of several epochs, run one after the other and each from fresh weights."""
    bridge = Bridge(some(lending, int(rows)), Matching())
    training_rows = _training_rows(bridge, next(_folds(bridge)))
    settings = replace(VARIANTS[variant], epochs=1, device=device)  # type: ignore[arg-type] # a name of a device
    # the first rows, and those of their matches that are among them: they warm up what is timed
    match = training_rows.match[:WARM_ROWS]
    first = TrainingRows(
        training_rows.inputs[:WARM_ROWS],
        training_rows.favourable[:WARM_ROWS],
        training_rows.protected[:WARM_ROWS],
        np.where(match < WARM_ROWS, match, training.UNMATCHED),
    )
    timings, closed_form = [], training.integrated_gradients
    if variant.endswith("double backward"):
        training.integrated_gradients = training.twice_differentiated
    try:
        train(first, settings)
        for _ in range(REPETITIONS):
            with timed() as times:
                train(training_rows, settings)
            timings.append(times)
    finally:
        training.integrated_gradients = closed_form
    least = {name: min(times[name] for times in timings) for name in ("seconds", "cpu_s")}
    return {"rows": len(training_rows.inputs), **least, "peak_mb": peak_mb()}


def quality(lending: Lending, variant: str, rows: str, number: str) -> dict[str, Any]:
    """Trains to the end on so many of five folds and returns means of consistency on the rows held out."""
    bridge = Bridge(some(lending, int(rows)), Matching())
    with timed() as times:
        folds = islice(_folds(bridge), int(number))
        fold_scores = [bridge.score(train(_training_rows(bridge, f), VARIANTS[variant]).net, f) for f in folds]
    means = {name: float(np.mean([scores[name] for scores in fold_scores])) for name in fold_scores[0]}
    return {"rows": len(bridge.rows.financial), "cpu_s": times["cpu_s"], **means}


def score(lending: Lending, pairs: str, rows: str) -> dict[str, Any]:
    """Times so many pairs matched, explained exactly and scored, of a net that was trained for an epoch."""
    bridge = Bridge(some(lending, int(rows)), Matching())
    fold = next(_folds(bridge))
    net = train(_training_rows(bridge, fold), replace(VARIANTS["plain"], epochs=1)).net
    bridge.scored(net, fold, fold.test[:WARM_ROWS])
    query_rows = np.resize(np.arange(len(fold.inputs)), int(pairs))  # over again where there are fewer rows
    with timed() as times:
        pair_summary = summary(bridge.scored(net, fold, query_rows))
    return {"rows": len(fold.inputs), **times, "peak_mb": peak_mb(), **pair_summary}


def match(rows: str, features: str) -> dict[str, Any]:
    """Times the matching of so many drawn rows with the other group, to which a third of them belong."""
    rng, n = np.random.default_rng(1), int(rows)
    financial = rng.normal(size=(n, int(features))) + 0.7 * rng.normal(size=(n, 1))
    group, label = (rng.random(n) < 1 / 3).astype(np.int32), rng.random(n) < 0.7
    everybody = np.ones(n, np.bool_)
    names = tuple(f"feature {number + 1}" for number in range(int(features)))
    with timed() as times:
        at = nearest.standardise(financial, names, everybody, Matching().winsorise)
        index = nearest.index(at, label, group, everybody, Matching())
        matches = [nearest.match_nearest(index, np.flatnonzero(group != to), to) for to in (0, 1)]
    return {
        "rows": n,
        **times,
        "peak_mb": peak_mb(),
        "matched": int(sum(group_match.matched.sum() for group_match in matches)),
        "median": float(np.median(np.concatenate([group_match.distance for group_match in matches]))),
    }


def _folds(bridge: Bridge) -> Iterator[Fold]:
    return mitigations.split(bridge.rows.population, FOLDS, DEFAULT.seed)


def _training_rows(bridge: Bridge, fold: Fold) -> TrainingRows:
    people, fitted = bridge.rows.population, fold.train
    return TrainingRows(fold.inputs[fitted], people.favourable[fitted], people.protected[fitted], bridge.match(fold))


if __name__ == "__main__":
    answer(epoch, quality, score, match, device)
