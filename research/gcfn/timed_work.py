"""Times GCFN on rows that are drawn here; ``evenhand bench gcfn`` starts it as a separate process.

Generators of mediators are trained here, so that the process's peak memory is that of the work. Applicants are those of
the paper's synthetic data (equation 72), for whom the truth is known.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from research.benchmark import answer, device, peak_mb, timed
from tasks.counterfactuals.algorithm.conditional import fit_quantiles
from tasks.counterfactuals.algorithm.diagnostics import against_truth
from tasks.counterfactuals.algorithm.gan import networks as gan
from tasks.counterfactuals.algorithm.gan.autograd import AutogradGame
from tasks.counterfactuals.algorithm.gan.compiled import CompiledGame
from tasks.counterfactuals.algorithm.gan.networks import GanSettings
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.numerics.networks.training import Checkpoint
from tasks.numerics.problem import Mediation

VARIANTS = {"default": GanSettings(device="cpu"), "paper": replace(GanSettings(device="cpu"), **gan.PAPER)}
QUANTILES = "quantile map"

FORMS: dict[str, type[CompiledGame] | type[AutogradGame]] = {"compiled": CompiledGame, "autograd": AutogradGame}
ROUNDS = 3
WARM_ROWS = 2_000
HELD_OUT = 0.2


def speed(rows: str, networks: str, epochs: str, device: str) -> dict[str, Any]:
    """Times a whole training, and one of its epochs after the first."""
    mediation = synthetic(Synthetic(rows=int(rows)), np.random.default_rng(0)).mediation()
    settings = replace(VARIANTS["default"], networks=int(networks), epochs=int(epochs), device=device)  # type: ignore[arg-type] # a name of a device
    train(mediation.rows(np.arange(min(WARM_ROWS, len(mediation)))), replace(settings, epochs=1))
    ended: list[tuple[float, float]] = []

    def note(_: Checkpoint) -> None:
        ended.append((time.perf_counter(), time.process_time()))

    with timed() as times:
        train(mediation, settings, note)
    of_epochs = np.diff(np.array(ended), axis=0)
    epoch_s, epoch_cpu_s = of_epochs.mean(axis=0).tolist() if len(of_epochs) else times.values()
    return {"rows": len(mediation), **times, "epoch_s": epoch_s, "epoch_cpu_s": epoch_cpu_s, "peak_mb": peak_mb()}


def forms(rows: str, batch: str, epochs: str) -> dict[str, Any]:
    """Times trainings of ten networks with compiled gradients and by automatic differentiation, in turn."""
    mediation = synthetic(Synthetic(rows=int(rows)), np.random.default_rng(0)).mediation()
    settings = replace(VARIANTS["default"], epochs=int(epochs), batch=int(batch))
    cpu_s = dict.fromkeys(FORMS, 0.0)
    for game in FORMS.values():
        train(mediation.rows(np.arange(min(WARM_ROWS, len(mediation)))), replace(settings, epochs=1), begin=game.begin)
    for _ in range(ROUNDS):
        for name, game in FORMS.items():
            cpu_s[name] += _epochs_cpu_s(mediation, settings, game)
    return {"rows": len(mediation), **cpu_s}


def _epochs_cpu_s(mediation: Mediation, settings: GanSettings, game: type[CompiledGame] | type[AutogradGame]) -> float:
    """CPU seconds of the epochs after the first: before it are scales of the rows, which all forms fit alike."""
    ends: list[float] = []
    train(mediation, settings, lambda _: ends.append(time.process_time()), begin=game.begin)
    return ends[-1] - ends[0]


def quality(variant: str, noise: str, rows: str, seeds: str) -> dict[str, Any]:
    """Returns means over networks on held-out rows for each seed, which draws new rows and weights."""
    slopes, errors, cpu = list[float](), list[float](), time.process_time()
    for seed in range(int(seeds)):
        sample = synthetic(Synthetic(rows=int(rows), noise=float(noise)), np.random.default_rng(seed))
        cut = round(HELD_OUT * int(rows))
        test_rows, fitted = (sample.rows(part) for part in np.split(np.arange(int(rows)), [cut]))
        rows_fitted, rows_tested = fitted.mediation(), test_rows.mediation()
        if variant == QUANTILES:
            imagined = fit_quantiles(rows_fitted, seed).imagine(rows_tested)
        else:
            imagined = train(rows_fitted, replace(VARIANTS[variant], seed=seed)).imaginer.imagine(rows_tested)
        comparison = against_truth(imagined, rows_tested, test_rows.potential, test_rows.mean)
        slopes.append(float(comparison.slope.mean()))
        errors.append(float(comparison.counterfactual_generated.mean()))
    return {"rows": int(rows), "slopes": slopes, "errors": errors, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    answer(speed, forms, quality, device)
