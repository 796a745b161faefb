"""Fair predictors for every protected attribute: tables in, tallies and aggregates of held-out rows out.

They learn the lender's outcomes, so that all is said of the lender's applications; the audited model stands beside them
as ``given``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.counterfactuals import GENERATORS
from schemas.errors import DataQualityError
from schemas.findings import AGGREGATES, TALLIES
from schemas.terms import DecisionMaker, Refusal
from tasks._columns import columns_of
from tasks._generators import Case, cases, regenerated
from tasks._progress import progress
from tasks._stage import Produced
from tasks._statistics import Origin
from tasks.algorithms import gcfn_predicted, gcfn_predictors
from tasks.algorithms.detector import Aggregate, Bools, Longs, Tally
from tasks.algorithms.gcfn_predicted import Predicted
from tasks.algorithms.gcfn_predictors import Lending
from tasks.predict_fairly import PredictSettings

METHOD = "gcfn"

GIVEN = {"model": "given"}
"""Names the audited model."""

_WHY: Mapping[str, str] = {
    Refusal.TOO_FEW_IN_CATEGORY: "the group, or the reference group, has fewer rows than generators learn from",
    Refusal.CONSTANT_MEDIATOR: "a mediator has a single value within the group, or within the reference group",
}


@dataclass(frozen=True)
class _Outcomes:
    """By row of the audit."""

    label: Bools
    given: Bools | None
    """Decisions of the audited model; None without one."""


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
    """As the stage ``predict_fairly`` says."""
    ids = applicants["row_id"].to_numpy()
    outcome = applications.select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
    known = _Outcomes(outcome.loc[ids].to_numpy(dtype=bool), _given(decisions))
    tallies, aggregates = [TALLIES.empty()], [AGGREGATES.empty()]
    for case in cases(columns_of(applicants, encodings), memberships, ids, settings):
        origin = Origin(METHOD, DecisionMaker.LENDER, case.protected.name, case.grouped.groups)
        told, given = _of_case(case, known, generators, settings)
        tallies.append(origin.tallies(told))
        aggregates.append(origin.aggregates([*given, *_refused(case, settings)]))
    return Produced({TALLIES.name: pa.concat_tables(tallies), AGGREGATES.name: pa.concat_tables(aggregates)})


def _given(decisions: pa.Table) -> Bools | None:
    """The audited model's decisions, in the order of the rows."""
    own = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
    return own["favourable"].to_numpy() if own.num_rows else None


def _of_case(
    case: Case, known: _Outcomes, generators: pa.Table, settings: PredictSettings
) -> tuple[list[Tally], list[Aggregate]]:
    """All that is said of one attribute; nothing where its groups cannot be learnt from."""
    if not len(case.categories.groups):
        return [], []
    label = known.label[case.categories.rows]
    _, test = gcfn_predictors.split(case.rows, label, settings.prediction.test, settings.seed)
    found = _trained(case, Lending(case.rows, regenerated(case, _state(case, generators)), label), settings)
    given = None if known.given is None else known.given[case.categories.rows][test]
    rng = np.random.default_rng([settings.seed, case.number])
    tallies: list[Tally] = []
    aggregates: list[Aggregate] = []
    for number, group in enumerate(case.categories.groups.tolist()):
        rows = np.flatnonzero(case.rows.category[test] == number)
        tallies += [replace(t, group=group) for t in _told(found, rows, label[test], given, settings)]
        made = gcfn_predicted.aggregates(
            found, rows, label[test], settings.prediction.gammas, settings.bootstrap.draws, rng
        )
        aggregates += [replace(a, group=group) for a in made]
    return tallies, aggregates


def _trained(case: Case, lending: Lending, settings: PredictSettings) -> list[Predicted]:
    """Every model of the comparison, telling of each."""
    number = len(gcfn_predictors.variants(case.rows, settings.prediction))
    found: list[Predicted] = []
    try:
        with progress(number, f"predictors for {case.protected.name}") as tell:
            for one in gcfn_predictors.predicted(lending, settings.prediction, settings.gcfn.device, settings.seed):
                found.append(one)
                tell(f"{one.model}, lambda {one.fairness:g}")
    except DataQualityError as error:
        raise DataQualityError(f"{case.protected.name}: {error} (methods.gcfn.prediction)") from error
    return found


def _told(
    found: list[Predicted], rows: Longs, label: Bools, given: Bools | None, settings: PredictSettings
) -> Iterator[Tally]:
    for one in found:
        yield from gcfn_predicted.tallies(one, rows, label, given, settings.prediction)
    if given is not None:
        yield from gcfn_predicted.rates(given[rows], label[rows], GIVEN)


def _refused(case: Case, settings: PredictSettings) -> Iterator[Aggregate]:
    """Groups that nothing is trained for."""
    models = [(v.name, v.fairness) for v in gcfn_predictors.variants(case.rows, settings.prediction)]
    reasons = case.categories.reasons
    for group, own in enumerate(reasons):
        reason = own or reasons[case.grouped.reference]
        if reason:
            n = int((case.grouped.group == group).sum())
            yield from (replace(a, group=group) for a in gcfn_predicted.refused(models, n, _WHY[reason]))


def _state(case: Case, generators: pa.Table) -> bytes | None:
    """The generators of an attribute; a map of quantiles leaves none."""
    mine = generators.filter(pc.equal(generators[GENERATORS.key[0]], case.protected.name))
    return mine["content"][0].as_py() if mine.num_rows else None
