"""Trains fair predictors for every protected attribute: tables in, tallies and aggregates of held-out rows out.

They learn the lender's outcomes, so that all figures are about the lender's applications; the audited model stands
beside them as ``given``. With a causal graph in the audit spec, a structural causal model abducts the mediators' noise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataQualityError
from schemas.tables.counterfactuals import GENERATORS
from schemas.tables.findings import AGGREGATES, TALLIES
from schemas.terms import DecisionMaker, Refusal
from tasks.counterfactuals.gan import Case, cases, regenerated
from tasks.counterfactuals.generators import World
from tasks.methods.gcfn.algorithm import people, predictors
from tasks.methods.gcfn.algorithm.people import Sorting
from tasks.methods.gcfn.algorithm.predictors import Lending, Predicted
from tasks.methods.gcfn.predict_fairly.settings import PredictSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.results import Aggregate, Tally
from tasks.pipeline.method import Origin
from tasks.pipeline.progress import progress
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import columns_of

METHOD = "gcfn"

GIVEN = {"model": "given"}
"""Names the audited model."""

_WHY: Mapping[str, str] = {
    Refusal.TOO_FEW_IN_CATEGORY: "the group, or the reference group, has fewer rows than generators learn from",
    Refusal.CONSTANT_MEDIATOR: "a mediator has a single value within the group, or within the reference group",
}


class _Audited(NamedTuple):
    """The audited model on some rows, ``(n,)``."""

    favourable: Bools
    score: Floats

    def rows(self, chosen: Longs) -> "_Audited":
        """The same on some of them."""
        return _Audited(self.favourable[chosen], self.score[chosen])


@dataclass(frozen=True)
class _HeldOut:
    """The ``n`` rows that predictors are measured on."""

    at: Longs
    """``(n,)`` among the rows of a case."""
    label: Bools
    audited: _Audited | None
    by: tuple[Sorting, ...]
    """Bands of their scores by the audited model and of their mediators; nothing without a model."""

    @classmethod
    def of(cls, case: Case, observed: "_Observed", settings: PredictSettings) -> "_HeldOut":
        """Those of a case."""
        rows = case.categories.rows
        _, at = predictors.split(case.rows, observed.label[rows], settings.prediction.test, settings.seed)
        audited = None if observed.audited is None else observed.audited.rows(rows[at])
        by = () if audited is None else people.sortings(case.rows.rows(at).mediators, audited.score)
        return cls(at, observed.label[rows[at]], audited, by)


@dataclass(frozen=True)
class _Observed:
    """Outcomes and decisions by row of the audit."""

    label: Bools
    audited: _Audited | None
    """None without a model."""
    world: World | None
    """None where nothing is assumed to cause anything."""

    def noise(self, case: Case) -> dict[str, Floats]:
        """Mediator -> the noise behind it, for the rows of a case; none of those that the causal model knows not."""
        noises = {} if self.world is None else self.world.noise(case.protected.name)
        mediators = set(case.rows.mediators.names)
        return {name: noise[case.categories.rows] for name, noise in noises.items() if name in mediators}

    def reached(self, case: Case) -> tuple[str, ...]:
        """The features that the attribute of a case reaches in the causal graph."""
        return () if self.world is None else self.world.reached(case.protected.name)


def predictions(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    applications: pa.Table,
    decisions: pa.Table,
    generators: pa.Table,
    *,
    settings: PredictSettings,
) -> Produced:
    """Does the work of the stage ``predict_fairly``."""
    ids = applicants["row_id"].to_numpy()
    outcome = applications.select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
    columns = columns_of(applicants, encodings)
    world = World.of(columns, memberships, ids, settings) if settings.causal_graph.edges else None
    model_decisions = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
    audited = None
    if model_decisions.num_rows:
        audited = _Audited(model_decisions["favourable"].to_numpy(), model_decisions["score"].to_numpy())
    observed = _Observed(outcome.loc[ids].to_numpy(dtype=bool), audited, world)
    tallies, aggregates = [TALLIES.empty()], [AGGREGATES.empty()]
    for case in cases(columns, memberships, ids, settings):
        origin = Origin(METHOD, DecisionMaker.LENDER, case.protected.name, case.grouped.groups)
        case_tallies, case_aggregates = _of_case(case, observed, generators, settings)
        tallies.append(origin.tallies(case_tallies))
        aggregates.append(origin.aggregates([*case_aggregates, *_refused(case, observed, settings)]))
    return Produced({TALLIES.name: pa.concat_tables(tallies), AGGREGATES.name: pa.concat_tables(aggregates)})


def _of_case(
    case: Case, observed: _Observed, generators: pa.Table, settings: PredictSettings
) -> tuple[list[Tally], list[Aggregate]]:
    """Tallies and aggregates of one attribute; empty where its groups cannot be used for training."""
    if not len(case.categories.groups):
        return [], []
    saved_generators = generators.filter(pc.equal(generators[GENERATORS.key[0]], case.protected.name))
    state = saved_generators["content"][0].as_py() if saved_generators.num_rows else None
    label, imagined = observed.label[case.categories.rows], regenerated(case, state)
    lending = Lending(case.rows, imagined, label, observed.noise(case))
    test_rows = _HeldOut.of(case, observed, settings)
    fair_predictions, rng = _trained(case, lending, settings), np.random.default_rng([settings.seed, case.number])
    gammas, draws = settings.prediction.gammas, settings.bootstrap.draws
    tallies: list[Tally] = []
    aggregates: list[Aggregate] = []
    for number, group in enumerate(case.categories.groups.tolist()):
        rows = np.flatnonzero(case.rows.category[test_rows.at] == number)
        tallies += [replace(t, group=group) for t in _tallies(fair_predictions, rows, test_rows, settings)]
        group_aggregates = predictors.aggregates(fair_predictions, rows, test_rows.label, gammas, draws, rng)
        abducted = predictors.abducted_shares(lending, test_rows.at[rows])
        aggregates += [replace(a, group=group) for a in (*group_aggregates, *abducted)]
    return tallies, aggregates


def _trained(case: Case, lending: Lending, settings: PredictSettings) -> list[Predicted]:
    """Trains every model of the comparison and reports progress after each."""
    number = len(predictors.variants(case.rows, settings.prediction, lending.abducted))
    fair_predictions: list[Predicted] = []
    try:
        with progress(number, f"predictors for {case.protected.name}") as report:
            for prediction in predictors.predicted(lending, settings.prediction, settings.gan.device, settings.seed):
                fair_predictions.append(prediction)
                report(f"{prediction.model}, lambda {prediction.fairness:g}")
    except DataQualityError as error:
        raise DataQualityError(f"{case.protected.name}: {error} (methods.gcfn.prediction)") from error
    return fair_predictions


def _tallies(
    fair_predictions: list[Predicted], rows: Longs, test_rows: _HeldOut, settings: PredictSettings
) -> Iterator[Tally]:
    """Tallies of every predictor and of the audited model on the rows of a group."""
    audited = None if test_rows.audited is None else test_rows.audited.favourable
    for prediction in fair_predictions:
        yield from predictors.tallies(prediction, rows, test_rows.label, audited, settings.prediction)
    if audited is not None:
        yield from predictors.rates(audited[rows], test_rows.label[rows], GIVEN)
        fairest = max(fair_predictions, key=lambda prediction: prediction.fairness)
        by = [sorting.rows(rows) for sorting in test_rows.by]
        differs = (fairest.favourable[rows] != audited[rows]).astype(np.float64)
        yield from people.by_band("treated_differently_by_band", fairest.named, differs, by)


def _refused(case: Case, observed: _Observed, settings: PredictSettings) -> Iterator[Aggregate]:
    """Groups that nothing is trained for."""
    compared = predictors.variants(case.rows, settings.prediction, observed.reached(case))
    models = [(v.name, v.fairness) for v in compared]
    reasons = case.categories.reasons
    for group, group_reason in enumerate(reasons):
        reason = group_reason or reasons[case.grouped.reference]
        if reason:
            n = int((case.grouped.group == group).sum())
            yield from (replace(a, group=group) for a in predictors.refused(models, n, _WHY[reason]))
