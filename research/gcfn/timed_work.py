"""Times GCFN; ``evenhand bench gcfn`` starts it as a separate process.

Generators of mediators are trained here, so that the process's peak memory is that of the work. Applicants are those of
the paper's synthetic data (equation 72), for whom the truth is known, or those of an audit, where settings are compared
that would save time.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow.feather as feather
import yaml
from scipy.stats import ks_2samp

from research.bench.lender import YEAR, draw
from research.benchmark import answer, device, peak_mb, timed
from research.figures import shipped
from schemas.errors import DataQualityError
from tasks.counterfactuals.algorithm.conditional import fit_mean, fit_quantiles
from tasks.counterfactuals.algorithm.diagnostics import against_truth
from tasks.counterfactuals.algorithm.gan import networks as gan
from tasks.counterfactuals.algorithm.gan.autograd import AutogradGame
from tasks.counterfactuals.algorithm.gan.compiled import CompiledGame, Rules, Singles, standing
from tasks.counterfactuals.algorithm.gan.networks import Encoded, Epoch, GanSettings, Shape
from tasks.counterfactuals.algorithm.gan.training import train
from tasks.counterfactuals.gan import Case, cases, gan_settings
from tasks.in_memory import tables_through
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.methods.gcfn.algorithm.detection import Mediated, unidentified
from tasks.methods.gcfn.algorithm.people import net_change
from tasks.methods.gcfn.mediate.mediators import Reassigned, ReassignedDecisions
from tasks.methods.gcfn.mediate.settings import MediateSettings
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.networks.perceptron import draws
from tasks.numerics.networks.training import Checkpoint
from tasks.numerics.problem import Mediation
from tasks.pipeline.registry import read_spec
from tasks.plan import plan
from tasks.preprocessing.columns import columns_of
from tasks.scoring.decider import Decide, decider

# --------------------------------------------------------------------------------------------------------------------
# Trainings on drawn applicants.


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


# --------------------------------------------------------------------------------------------------------------------
# Settings that save time: how each trains the generators of an audit.
#
# None of them is resumed here, so their state besides the weights is in no checkpoint.


SEEDS: Final = 5
HELD_OUT_SHARE: Final = 0.1
PATIENCE: Final = 30
"""Epochs without a smaller error after which a network comes to rest."""
ALWAYS: Final = 2**31
"""Epochs of falling that never end, at a rate that does not fall."""
_SPLIT: Final = 2**32 - 3
"""In the place of a network's number in the draws of held-out rows."""


@dataclass(frozen=True)
class RestingGame(CompiledGame):
    """Networks learn from nine tenths of the rows, and stop when the rest is no longer reconstructed better."""

    held_out: tuple[Singles, Longs]
    """Table ``(r, c + k + d)`` and category ``(r,)`` of the other rows."""
    falling: int
    """Epochs in which a network's learning rate falls before it stops; 0: it stops at once."""
    errors: dict[int, list[float]] = field(default_factory=dict)
    """Network -> squared error of the held-out mediators after each epoch."""
    last: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """Network -> terms of the history after its last epoch."""

    @classmethod
    def of(cls, encoded: Encoded, shape: Shape, settings: GanSettings, falling: int) -> "RestingGame":
        """A game with fresh weights, its held-out rows drawn by the seed."""
        game = CompiledGame.begin(encoded, shape, settings)
        order = draws(settings.seed, _SPLIT).permutation(len(game.category))
        cut = round(HELD_OUT_SHARE * len(order))
        test_rows, learnt_rows = np.sort(order[:cut]), np.sort(order[cut:])
        return cls(
            settings, shape, game.table[learnt_rows], game.category[learnt_rows], game.module, game.sides,
            (game.table[test_rows], game.category[test_rows]), falling,
        )  # fmt: skip

    def _network(self, at: int, epoch: int, rules: Rules) -> tuple[float, float, float]:
        errors = self.errors.setdefault(at, [])
        stalled = stalled_at(errors)
        if stalled is not None:
            epochs_left = self.falling - (len(errors) - stalled)
            if epochs_left <= 0:
                return self.last[at]
            rules = rules._replace(rate=min(rules.rate, self.settings.learning_rate * epochs_left / self.falling))
        self.last[at] = super()._network(at, epoch, rules)
        table, category = self.held_out
        sides = (self.sides[0].values[at], self.sides[1].values[at])
        missed, _, _ = standing(table, category, np.arange(len(category)), sides, self.sides[0].running[at], rules)
        errors.append(missed)
        return self.last[at]


def stalled_at(errors: list[float]) -> int | None:
    """Epochs after which an error had not fallen for ``PATIENCE`` epochs; None while it falls."""
    least, since = np.inf, 0
    for epoch, error in enumerate(errors, 1):
        least, since = (error, 0) if error < least else (least, since + 1)
        if since == PATIENCE:
            return epoch
    return None


@dataclass(frozen=True)
class WarmGame(CompiledGame):
    """The first network trains alone for some epochs; the others then start from its weights."""

    alone: int = 0
    """Epochs."""

    @contextmanager
    def playing(self) -> Iterator[Epoch]:
        """Runs epochs one after another, and hands the weights on before one of them."""
        with super().playing() as play:

            def epoch(number: int, rate: float) -> Any:
                if number == self.alone:
                    for side in self.sides:
                        side.values[1:] = side.values[0]
                        side.running[1:] = side.running[:1]
                return play(number, rate)

            yield epoch

    def _network(self, at: int, epoch: int, rules: Rules) -> tuple[float, float, float]:
        return super()._network(at, epoch, rules) if at == 0 or epoch >= self.alone else (1.0, 1.0, 0.0)


Begin = Callable[[Encoded, Shape, GanSettings], CompiledGame]


class Candidate(NamedTuple):
    """A way to train generators."""

    title: str
    changed: Callable[[GanSettings], GanSettings] = lambda settings: settings
    begin: Begin = CompiledGame.begin
    first_seed: int = 0


def _resting(falling: int) -> Begin:
    return lambda encoded, shape, settings: RestingGame.of(encoded, shape, settings, falling)


def _warm(encoded: Encoded, shape: Shape, settings: GanSettings) -> CompiledGame:
    game = CompiledGame.begin(encoded, shape, settings)
    return WarmGame(settings, shape, game.table, game.category, game.module, game.sides, settings.epochs // 3)


TODAY: Final = "today"
CONTROL: Final = "seeds"
CANDIDATES: Final[Mapping[str, Candidate]] = {
    TODAY: Candidate("today's setting"),
    CONTROL: Candidate("today's setting, other seeds", first_seed=SEEDS),
    "crippled": Candidate("20 epochs", lambda settings: replace(settings, epochs=20)),
    "half": Candidate("half of the epochs", lambda settings: replace(settings, epochs=settings.epochs // 2)),
    "fewer": Candidate("half of the networks", lambda settings: replace(settings, networks=settings.networks // 2)),
    "held out": Candidate("a tenth of the rows held out, without a stop", begin=_resting(ALWAYS)),
    "rest": Candidate("a network stops", begin=_resting(0)),
    "slow": Candidate("its rate falls for 50 epochs, then it stops", begin=_resting(50)),
    "warm": Candidate("networks start from the first", begin=_warm),
}


# --------------------------------------------------------------------------------------------------------------------
# Results of an audit's generators by seed, and whether those of another setting differ by more than seeds do.


AUDITS: Final = ("boston1990", "hmda")


class Audited(NamedTuple):
    """An audit's first protected attribute: its applicants, how the model decides, and settings of GCFN."""

    case: Case
    decide: Decide
    wide: float


class SeedResult(NamedTuple):
    """Results of generators of one seed for the ``m`` applicants outside the reference group, as members of it."""

    cpu_s: float
    decisions: list[bool]
    """``(m,)`` whether most networks change the decision."""
    verdicts: list[int]
    """``(m,)`` 0 kept, 1 changed, 2 not identified."""
    levels: dict[str, float]
    """Measure and group -> value."""
    dependence: float
    """Between noise and group: ``dependence``."""


class Comparison(NamedTuple):
    """A measure of a candidate against today's setting."""

    measure: str
    today: list[float]
    """By seed, or by pair of seeds."""
    candidate: list[float]
    """By seed; of changed applicants against today's setting with the same seed."""
    over_spread: float
    """What the mean moves by, over what seeds of today's setting lie apart at most."""


_READS: Final = ("applicants", "decisions", "encodings", "memberships", "models")
"""Tables that the trainings and their decisions read."""


def applicants(name: str, rows: str, folder: str) -> dict[str, Any]:
    """Reads an audit up to its model, and writes its tables for ``seeded``; of HMDA, a drawn lender."""
    content = yaml.safe_load(shipped(f"audits/{name}.yaml").read_text(encoding="utf-8"))
    if name == "hmda":
        file = Path(folder) / "lender.txt"
        groups = draw(file, int(rows))
        content["source"] |= {"path": str(file)}
        del content["source"]["vintage"]
        content["year"] = YEAR
        for attribute in content["protected"]:
            present = groups[attribute["columns"][0]]
            attribute["groups"] = {name: codes for name, codes in attribute["groups"].items() if present & set(codes)}
    content["methods"] = {"gcfn": content["methods"]["gcfn"]}
    del content["verdicts"]
    text = yaml.safe_dump(content, sort_keys=False)
    (Path(folder) / f"{name}.yaml").write_text(text, encoding="utf-8")
    tables = tables_through(read_spec(text, name).spec, "score")
    for table in _READS:
        feather.write_feather(tables[table], str(Path(folder) / f"{name}.{table}"), "uncompressed")
    return {"rows": tables["applicants"].num_rows}


def audited(folder: str, name: str) -> Audited:
    """Reads what ``applicants`` wrote.

    Raises:
        DataQualityError: The audit trains no generators, or its rows are too few for its model.
    """
    spec = read_spec((Path(folder) / f"{name}.yaml").read_text(encoding="utf-8"), name).spec
    settings = next(step.settings for step in plan(spec).steps if step.name == "mediate")
    if not isinstance(settings, MediateSettings):
        raise DataQualityError(f"{name} trains no generators")
    tables = {table: feather.read_table(str(Path(folder) / f"{name}.{table}")) for table in _READS}
    columns = columns_of(tables["applicants"], tables["encodings"])
    case = next(cases(columns, tables["memberships"], tables["applicants"]["row_id"].to_numpy(), settings))
    decide = decider(settings.model, tables["models"], tables["encodings"], tables["decisions"])
    if decide is None:
        raise DataQualityError(f"{name} has too few rows to fit its model")
    return Audited(case, decide, GcfnSettings().wide)


def seeded(folder: str, name: str, candidate: str, seeds: str) -> dict[str, Any]:
    """Trains generators as a candidate does, once for each seed."""
    about, how = audited(folder, name), CANDIDATES[candidate]
    settings = how.changed(replace(gan_settings(about.case.settings), device="cpu"))
    numbers = range(settings.seed + how.first_seed, settings.seed + how.first_seed + int(seeds))
    return {"results": [seed_result(about, replace(settings, seed=number), how.begin) for number in numbers]}


def seed_result(about: Audited, settings: GanSettings, begin: Begin) -> SeedResult:
    """Trains generators with one seed, and compares the decisions on their counterfactuals."""
    case = about.case
    cpu = time.process_time()
    trained = train(case.rows.rows(case.trained), settings, begin=begin)
    cpu = time.process_time() - cpu
    to = int(np.flatnonzero(case.categories.groups == case.grouped.reference)[0])
    reassigned = Reassigned.of(case, trained.imaginer.imagine(case.rows), to)
    decided = ReassignedDecisions.of(case, reassigned, about.decide)
    flips = decided.flips
    mediated = Mediated(reassigned.at, reassigned.spread, np.full(len(reassigned.at), ""), flips, decided.change)
    doubtful = unidentified(mediated, about.wide)
    levels = dict[str, float]()
    category = case.rows.category[reassigned.at]
    net = net_change(flips.astype(np.float64), decided.favourable)
    for number in np.unique(category).tolist():
        rows, group = category == number, case.rows.categories[number]
        levels |= {
            f"decision_flip_share, {group}": float(flips[:, rows].mean(axis=1).max()),
            f"share_changed, {group}": float(net[:, rows].mean()),
            f"score_change, {group}": float(decided.change[:, rows].mean()),
            f"not_identified_share, {group}": float(doubtful[rows].mean()),
        }
    verdicts = np.where(doubtful, 2, flips.all(axis=0))
    return SeedResult(cpu, (flips.mean(axis=0) > 0.5).tolist(), verdicts.tolist(), levels, dependence(case, reassigned))


def dependence(case: Case, reassigned: Reassigned) -> float:
    """Dependence left between noise and group: mean distance D of Kolmogorov and Smirnov from the reference group.

    The noise is a numeric mediator as in the reference group, less its mean there given the covariates: generated of
    the members of other groups, observed of the reference group's. The mean is over groups, networks and mediators.

    Args:
        case: The applicants.
        reassigned: Members of other groups as members of the reference group.
    """
    members = np.flatnonzero(case.rows.category == reassigned.to)
    mean = fit_mean(case.rows.rows(case.trained), 0).potential(case.rows.covariates)[reassigned.to]
    numeric, category = case.rows.numeric, case.rows.category[reassigned.at]
    observed: Floats = case.rows.mediators.values[members][:, numeric] - mean[members]
    generated: Floats = reassigned.values[..., numeric] - mean[reassigned.at]
    distances = [
        ks_2samp(noise[category == number, at], observed[:, at]).statistic
        for noise in generated
        for number in np.unique(category)
        for at in range(observed.shape[1])
    ]
    return float(np.mean(distances))


def comparisons(today: Sequence[SeedResult], candidate: Sequence[SeedResult]) -> Iterator[Comparison]:
    """Each measure of a candidate against today's setting, one run a seed of both.

    A candidate may change as many applicants as another seed of today's setting does at most. A mean may move by as
    much as two seeds of today's setting lie apart. Quality has to be equal: the mean dependence may not be above that
    of every seed of today's setting. Five seeds show less than the whole spread, so ``limits_of`` adds a control.
    """
    for measure in ("decisions", "verdicts"):

        def unlike(first: SeedResult, second: SeedResult, name: str = measure) -> float:
            return float(np.mean(np.array(getattr(first, name)) != np.array(getattr(second, name))))

        pairs = [unlike(*pair) for pair in combinations(today, 2)]
        candidate_values = [unlike(*pair) for pair in zip(today, candidate, strict=True)]
        yield Comparison(
            f"{measure} unlike another seed's", pairs, candidate_values, _over(_mean(candidate_values), max(pairs))
        )
    for measure in today[0].levels:
        values, candidate_values = ([run.levels[measure] for run in runs] for runs in (today, candidate))
        yield Comparison(
            measure,
            values,
            candidate_values,
            _over(abs(_mean(candidate_values) - _mean(values)), max(values) - min(values)),
        )
    values, candidate_values = ([run.dependence for run in runs] for runs in (today, candidate))
    worse = max(0.0, _mean(candidate_values) - _mean(values))
    yield Comparison(
        "dependence of noise and group", values, candidate_values, _over(worse, max(values) - _mean(values))
    )


def limits_of(today: Sequence[SeedResult], control: Sequence[SeedResult]) -> dict[str, float]:
    """Measure -> the limit of ``over_spread``: 1, or what as many other seeds of today's setting come out at."""
    return {line.measure: max(1.0, line.over_spread) for line in comparisons(today, control)}


def _over(change: float, spread: float) -> float:
    return change / spread if spread else np.inf if change else 0.0


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


if __name__ == "__main__":
    answer(speed, forms, quality, device, applicants, seeded)
