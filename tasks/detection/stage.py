"""Stage detect: runs one method on every decision maker and protected attribute; its arrays become tables.

The stage knows no method: the registry names its module, and every module has the same function ``detect``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from schemas.audit.causal import CausalGraph
from schemas.audit.limits import Bootstrap
from schemas.audit.methods import Methods
from schemas.audit.model import Model
from schemas.audit.partition import Sampling
from schemas.audit.spec import AuditSpec, Decision, Explain, Protected, StageSettings
from schemas.errors import DataQualityError
from schemas.tables.applications import APPLICANTS, MODELS
from schemas.tables.findings import AGGREGATES, DRAWS, EVIDENCE, FINDINGS, TALLIES
from schemas.terms import Note
from tasks.counterfactuals.settings import MatchingSettings, matching_of
from tasks.counterfactuals.stage_settings import Generator
from tasks.lake.store import IN_MEMORY, Drafts
from tasks.numerics.results import Aggregate, Detected, Tally
from tasks.pipeline.method import READS, Origin, ProblemTables
from tasks.pipeline.registry import METHODS, generator_of, tables_declared
from tasks.pipeline.resources import return_freed
from tasks.pipeline.stage import Produced, stage

if TYPE_CHECKING:
    from tasks.detection.problems import Case

Key = tuple[str, int, str, str]
"""Group, subgroup, measure, parameters."""
ProblemResult = tuple[tuple[str, ...], Detected]
"""The names of the groups of a problem, and the results of its method."""


class DetectSettings(StageSettings):
    """Settings of the detection by one method."""

    method: str
    methods: Methods
    """The settings of ``method`` alone; the others are null."""
    explain: Explain
    protected: tuple[Protected, ...]
    bootstrap: Bootstrap
    seed: int
    model: Model | None
    """Only for a method that asks the model again, or looks into it."""
    decision: Decision | None
    causal_graph: CausalGraph
    """These two only for a method that imagines applicants anew."""
    generator: Generator | None
    """What makes the counterfactuals of a method that is given some."""
    logged: tuple[str, ...]
    """Columns that regressions take the logarithm of; only for a method that compares applicants by their columns."""
    sampling: Sampling | None
    """Only for a method that asks a sample of a large problem."""

    @property
    def matching(self) -> MatchingSettings:
        """How the generator ``nearest`` matches."""
        return matching_of(self.methods.named(self.method))

    @property
    def imagines_everybody(self) -> bool:
        """Whether the method looks at counterfactuals of all rows."""
        return self.methods.named(self.method).imagines_everybody


def detect_settings(spec: AuditSpec, method: str) -> DetectSettings:
    """The stage's settings for one method: no change to another method's, or to what is trained, touches them."""
    only = spec.methods.only(method, spec.methods.named(method).detecting())
    reads = METHODS[method].reads
    generator = generator_of(spec, METHODS[method])
    overrides: dict[str, Any] = {"decision": None, "model": None, "causal_graph": CausalGraph(), "generator": generator}
    sampling = spec.sampling if METHODS[method].sampling in ("sampled", "pool") else None
    if sampling and METHODS[method].sampling == "sampled":
        sampling = sampling.model_copy(update={"pool_rows": None})
    overrides |= {"logged": (), "sampling": sampling}
    if APPLICANTS in reads:
        overrides["logged"] = tuple(name for name, column in spec.features().items() if column.scale == "log")
    if MODELS in reads:
        overrides["model"] = spec.model
    if generator == "scm":
        overrides |= {"decision": spec.decision, "causal_graph": spec.causal_graph}
    return DetectSettings.of(spec, method=method, methods=only, **overrides)


@stage(
    reads=tuple(dict.fromkeys((*READS, *tables_declared()))),
    writes=(FINDINGS, EVIDENCE, TALLIES, AGGREGATES, DRAWS),
    streams=True,
)
def detect(*inputs: pa.Table, settings: DetectSettings, drafts: Drafts = IN_MEMORY) -> Produced:
    """The findings of one method, the evidence behind them, and what is needed to summarise them."""
    from tasks.detection.problems import cases, later_cases  # loads what asks a model again

    method = METHODS[settings.method].load()
    tables: dict[str, list[pa.Table]] = {t.name: [t.empty()] for t in detect.writes if t is not EVIDENCE}
    evidence = drafts.new(EVIDENCE.name, EVIDENCE.schema())
    expected = 0
    by_name = {table.name: table_read for table, table_read in zip(detect.reads, inputs, strict=True)}
    problem_tables = ProblemTables.of(by_name)
    later_draws: dict[tuple[str, str], list[ProblemResult | DataQualityError]] = {}
    for at, case in later_cases(problem_tables, settings):  # values alone, for their spread
        rng = np.random.default_rng([settings.seed, at, crc32(case.attribute.encode())])
        values_alone = settings.methods.named(settings.method).repeated()
        results = later_draws.setdefault((case.decision_maker, case.attribute), [])
        try:
            values = method.detect(replace(case.problem, resamples=0), values_alone, rng)
            results.append((case.problem.groups, values))
        except DataQualityError as error:
            results.append(error)
    for case in cases(problem_tables, settings):
        try:
            detected = _detected(method, case, settings, later_draws.get((case.decision_maker, case.attribute), []))
            expected += int(method.units(case.problem).sum())
        except DataQualityError as error:
            # No value, and the reason, for each measure by which a theory is judged and each group that it is about.
            refused_method = METHODS[settings.method]
            measures = [
                judgement.measure
                for judgement in refused_method.verdict_measures
                if judgement.maker in (None, case.decision_maker)
            ]
            sizes = np.bincount(case.problem.group, minlength=len(case.problem.groups))
            members = {
                group: n
                for group, n in enumerate(sizes.tolist())
                if refused_method.of_reference or group != case.problem.reference
            }
            detected = Detected.refused(measures, members, str(error))
        for name, table in _tables(settings.method, case, detected).items():
            tables[name].append(table)
        for piece in detected.evidence.pieces():
            evidence.append(
                EVIDENCE.build(
                    **_of_case(settings.method, case, len(piece.row)),
                    row_id=case.ids[piece.row],
                    role=piece.role.astype(object),
                    rank=piece.rank,
                    other_row_id=case.ids[piece.other],
                    value=piece.value,
                )
            )
        del detected  # before the next problem is looked at: neighbours of two at a time would take twice the room
        return_freed()  # hundreds of megabytes in a large file
    full_tables = {name: pa.concat_tables(parts) for name, parts in tables.items()}
    return Produced({**full_tables, EVIDENCE.name: evidence.ended()}, rows_in=expected)


def _detected(
    method: ModuleType, case: "Case", settings: DetectSettings, later_draws: Sequence[ProblemResult | DataQualityError]
) -> Detected:
    # both decision makers are looked at on the same subsamples and permutations
    rng = np.random.default_rng([settings.seed, crc32(case.attribute.encode())])
    method_settings = settings.methods.named(settings.method)
    detected: Detected
    if not later_draws:
        detected = method.detect(case.problem, method_settings, rng)
        return detected
    detected = method.detect(replace(case.problem, resamples=0), method_settings.of_draws(), rng)
    results: list[ProblemResult] = []
    for result in later_draws:
        if isinstance(result, DataQualityError):
            raise result
        results.append(result)
    return over_draws((case.problem.groups, detected), results)


def _tables(method: str, case: "Case", detected: Detected) -> Mapping[str, pa.Table]:
    problem, ids = case.problem, case.ids
    names = np.array(problem.groups, dtype=object)
    origin = Origin(method, case.decision_maker, case.attribute, problem.groups, case.sampled)

    f = detected.findings
    nothing = [None] * len(f.row)
    tested = vars(f.tested) if f.tested else dict.fromkeys(("control", "test", "low", "high", "p", "q"), nothing)
    return {
        FINDINGS.name: FINDINGS.build(
            **_of_case(method, case, len(f.row)),
            row_id=ids[f.row],
            group=names[problem.group[f.row]],
            subgroup=f.subgroup,
            verdict=f.verdict.astype(object),
            statistic=f.statistic,
            **tested,
            refusal=[str(reason) or None for reason in f.refusal],
            weight=np.ones(len(f.row)) if case.weights is None else case.weights[f.row],
        ),
        TALLIES.name: origin.tallies(detected.tallies),
        AGGREGATES.name: origin.aggregates(detected.aggregates),
        DRAWS.name: origin.draws(detected.draws),
    }


def _of_case(method: str, case: "Case", n: int) -> dict[str, list[str]]:
    return {
        "method": [method] * n,
        "decision_maker": [case.decision_maker] * n,
        "protected_attribute": [case.attribute] * n,
    }


# --------------------------------------------------------------------------------------------------------------------
# What a method found on several draws of the rows, as one: means over draws, with their spread as a range.
#
# A measure that depends on how many rows there are has no sampling error to speak of; it has a value at so many rows,
# and a spread over draws (verdicts.md 4). So no interval is made of it.
#
# Scope: measures of the draws. Which rows a draw has: ``tasks.feasibility_graph.rows``.


def over_draws(first: ProblemResult, later_draws: Sequence[ProblemResult]) -> Detected:
    """Findings, evidence and draws of the first; every measure of it as an aggregate over all draws."""
    values: dict[Key, list[float]] = {}
    for names, detected in (first, *later_draws):
        for aggregate in _aggregates(detected):
            values.setdefault(_key(names, aggregate), []).append(aggregate.value)
    names, detected = first
    ranged = tuple(_ranged(aggregate, values[_key(names, aggregate)]) for aggregate in _aggregates(detected))
    return replace(detected, tallies=(), aggregates=ranged)


def _aggregates(detected: Detected) -> Iterator[Aggregate]:
    yield from map(_mean, detected.tallies)
    yield from detected.aggregates


def _key(names: tuple[str, ...], aggregate: Aggregate) -> Key:
    return (
        names[aggregate.group],
        aggregate.subgroup,
        aggregate.measure,
        json.dumps(dict(aggregate.parameters), sort_keys=True),
    )


def _mean(tally: Tally) -> Aggregate:
    """The mean of a tally; of a share the units that it counts."""
    is_defined = ~np.isnan(tally.values)
    defined = int(tally.counts[is_defined].sum())
    value = float(tally.counts[is_defined] @ tally.values[is_defined] / defined) if defined else np.nan
    is_share = tally.share and bool(np.isin(tally.values[is_defined], (0.0, 1.0)).all())
    return Aggregate(
        tally.group,
        tally.subgroup,
        tally.measure,
        tally.parameters,
        value,
        int(tally.counts.sum()),
        headline=tally.headline,
        compared=tally.compared,
        events=int(tally.counts[tally.values == 1].sum()) if is_share else None,
    )


def _ranged(aggregate: Aggregate, values: list[float]) -> Aggregate:
    """The mean over the draws that have a value, between the smallest and the largest.

    Subgroups are those of one draw: they are other people in another.
    """
    finite_values = [value for value in values if np.isfinite(value)] if not aggregate.subgroup else []
    bare = replace(aggregate, replicates=np.zeros(0), interval=None)
    if len(finite_values) < 2 or not np.isfinite(aggregate.value):
        return bare
    reason = "; ".join(filter(None, (aggregate.reason, str(Note.RANGE))))
    return replace(
        bare, value=float(np.mean(finite_values)), interval=(min(finite_values), max(finite_values)), reason=reason
    )
