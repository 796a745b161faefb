"""Stage publish: decides once what a run may publish, and writes the tables that every output reads.

``crowd`` has the records of the source, ``algorithm`` decides what becomes of every count of people, and
``fates`` is asked for it by the modules that publish the tables: measures here, ``judged``, ``exclusions``, ``facts``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from schemas.artifact import Artifact
from schemas.audit.limits import Bootstrap, Disclosure, Verdicts
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.errors import SpecError
from schemas.table import Table
from schemas.tables import applications, verdicts
from schemas.tables.findings import AGGREGATES, CURVES, FINDINGS, MEASURES, TALLIES
from schemas.tables.readings import COPIED_ROWS
from tasks.metrics.curves import measured_alone
from tasks.metrics.limits import Tallied
from tasks.metrics.publish import facts, measures
from tasks.metrics.publish.algorithm.audit import told_decisions
from tasks.metrics.publish.algorithm.populations import Count
from tasks.metrics.publish.algorithm.primary import Losses, Outcome, Request
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.metrics.publish.algorithm.suppression import suppress
from tasks.metrics.publish.measures import Fates
from tasks.metrics.publish.people import (
    Crowd,
    Joint,
    SourceTables,
    counts_of,
    earlier_of,
    handed_on,
    is_lacking,
    together,
)
from tasks.pipeline.registry import tables_shown
from tasks.pipeline.stage import Produced, stage
from tasks.preprocessing.columns import without_copies

_ENDS_SOUGHT = 500
"""Up to so many counts the ends of what can be told are sought; of more, as far as the pass had to."""


class PublishSettings(StageSettings):
    """Settings of the disclosure pass."""

    memory: ClassVar[Growth] = Growth(220, 13, "asked", 1.2)

    protected: tuple[Protected, ...]
    disclosure: Disclosure
    bootstrap: Bootstrap
    seed: int
    neighbours: int | None = None
    """Of an applicant in CST; None where it does not run."""
    fewest: int = Verdicts().minimum_n
    """People that a verdict needs."""

    def earlier(self) -> list[tuple[str, list[int]]]:
        """Earlier published runs, each with the rows of its tables in the order of ``EARLIER``."""
        sizes = [{artifact.table: artifact.rows for artifact in run.tables} for run in self.disclosure.beside]
        runs = [run.run for run in self.disclosure.beside]
        return [(run, [rows[t.name] for t in verdicts.EARLIER]) for run, rows in zip(runs, sizes, strict=True)]


def publish_settings(spec: AuditSpec) -> PublishSettings:
    """The stage's settings."""
    neighbours = getattr(spec.methods.by_name.get("cst"), "k", None)
    return PublishSettings.of(spec, neighbours=neighbours, fewest=spec.verdicts.minimum_n)


def given(spec: AuditSpec) -> tuple[Artifact, ...]:
    """The tables of earlier published runs that the stage reads.

    Raises:
        SpecError: a run is named and was not looked up in a lake.
    """
    unknown = [run.run for run in spec.disclosure.beside if len(run.tables) != len(verdicts.EARLIER)]
    if unknown:
        raise SpecError(f"{unknown[0]} has to be looked up in a lake; start the audit there", ("disclosure", "beside"))
    return tuple(artifact for run in spec.disclosure.beside for artifact in run.tables)


READ: tuple[Table, ...] = (
    *(
        MEASURES,
        *CURVES,
        verdicts.VERDICTS,
        verdicts.AGREEMENT,
        applications.APPLICATIONS,
        applications.MEMBERSHIPS,
        applications.REFUSALS,
        applications.REFUSAL_COUNTS,
        applications.DECISIONS,
        applications.MODEL_REFITS,
        COPIED_ROWS,
    ),
    *(TALLIES, AGGREGATES, FINDINGS, applications.MISSINGNESS, *verdicts.FACTS, *tables_shown(), *verdicts.EARLIER),
)
WRITTEN: tuple[Table, ...] = (
    *(
        verdicts.PUBLICATION,
        verdicts.PUBLISHED_MEASURES,
        *verdicts.PUBLISHED_CURVES,
        verdicts.PUBLISHED_VERDICTS,
        verdicts.PUBLISHED_AGREEMENT,
        verdicts.PUBLISHED_WATERFALL,
    ),
    *(
        verdicts.PUBLISHED_MISSINGNESS,
        verdicts.PUBLISHED_FINDINGS,
        verdicts.PUBLISHED_AGREEMENT_PAIRS,
        *(verdicts.published(table) for table in (*verdicts.FACTS, *tables_shown())),
    ),
    *(verdicts.PUBLISHED_MERGED, verdicts.PUBLICATION_ROWS, verdicts.PUBLICATION_KINDS, verdicts.PUBLICATION_BESIDE),
)


@stage(reads=READ, writes=WRITTEN, resources=("metrics/sql/*.sql",), balanced=False)
def publish(*tables: pa.Table, settings: PublishSettings) -> Produced:
    """The fate of every number of people, and the published tables."""
    inputs = {declared.name: table for declared, table in zip(READ, tables, strict=True)}
    inputs[applications.APPLICATIONS.name] = without_copies(
        inputs[applications.APPLICATIONS.name], inputs[COPIED_ROWS.name]
    )
    lacks, verdict_rows = inputs[applications.MISSINGNESS.name].to_pylist(), inputs[verdicts.VERDICTS.name].to_pylist()
    fates = fates_of(inputs, lacks, verdict_rows, settings)
    statistics = [inputs[table.name] for table in (TALLIES, AGGREGATES)]
    if not fates.policy.protects:  # nothing is withheld, so that points of curves need not be looked at one by one
        statistics = [measured_alone(table, inputs[MEASURES.name]) for table in statistics]
    decided = (applications.APPLICATIONS, applications.DECISIONS, applications.MEMBERSHIPS)
    tallied = Tallied.of(*(inputs[table.name] for table in decided), *statistics)
    hidden = measures.hidden(tallied, fates)
    references = {p.name: p.reference for p in settings.protected}
    publisher = measures.publisher_of(inputs, tallied, hidden, fates, settings.bootstrap, settings.seed, references)
    # earlier runs have a row each, unless nothing is withheld at all, or rows cannot be matched
    is_matched = fates.policy.protects and fates.crowd.row_by_row
    runs = [run.run for run in settings.disclosure.beside] if is_matched else []
    disclosures, closed = fates.outcome.beside, len(fates.outcome.closed)
    measured = measures.published_measures(inputs[MEASURES.name], publisher, fates)
    pairing = facts.Pairing(references, settings.neighbours, settings.fewest, settings.seed)
    out = {
        verdicts.PUBLICATION.name: fates.table(measures.rows(fates)),
        verdicts.PUBLISHED_MERGED.name: measures.table(fates),
        verdicts.PUBLISHED_MEASURES.name: measured,
        **{
            published.name: measures.published_curves(curves, inputs[curves.name], publisher, fates, references)
            for curves, published in zip(CURVES, verdicts.PUBLISHED_CURVES, strict=True)
        },
        verdicts.PUBLISHED_VERDICTS.name: measures.verdicts(verdict_rows, hidden, fates),
        verdicts.PUBLISHED_AGREEMENT.name: facts.explained(
            measures.agreement(inputs[verdicts.AGREEMENT.name].to_pylist(), verdict_rows, hidden, fates, settings.seed),
            measured,
            pairing,
        ),
        verdicts.PUBLISHED_WATERFALL.name: facts.waterfall(fates),
        verdicts.PUBLISHED_MISSINGNESS.name: facts.missingness(lacks, fates),
        verdicts.PUBLISHED_FINDINGS.name: facts.findings(inputs[FINDINGS.name], fates),
        verdicts.PUBLISHED_AGREEMENT_PAIRS.name: facts.agreement_pairs(inputs[FINDINGS.name], measured, pairing, fates),
        verdicts.PUBLICATION_BESIDE.name: verdicts.PUBLICATION_BESIDE.build(
            run=runs, told=[disclosures] * len(runs), closed=[closed] * len(runs)
        ),
        **handed_on(fates.crowd, _lacking(lacks)),
    }
    inputs |= {
        applications.ENCODINGS.name: facts.encodings(
            inputs[applications.ENCODINGS.name], inputs[applications.APPLICATIONS.name], fates.policy
        )
    }
    return Produced(out | facts.tables([(t, inputs[t.name]) for t in (*verdicts.FACTS, *tables_shown())], fates))


def fates_of(
    inputs: dict[str, pa.Table],
    lacks: list[dict[str, str]],
    verdict_rows: list[dict[str, str]],
    settings: PublishSettings,
) -> Fates:
    """What becomes of every count of people: one pass over all of them."""
    pairs = _lacking(lacks)
    features = tuple(dict.fromkeys(feature for feature, reason in pairs if reason != applications.ANY))
    record_tables = SourceTables(
        *(
            inputs[table.name]
            for table in (
                applications.APPLICATIONS,
                applications.MEMBERSHIPS,
                applications.REFUSALS,
                applications.REFUSAL_COUNTS,
            )
        )
    )
    crowd = Crowd.of(record_tables, inputs[applications.DECISIONS.name], settings.protected, features)
    people, policy = crowd.people(pairs), POLICIES[settings.disclosure.profile]
    counts = counts_of(people)
    curves = frozenset(count.population for count in counts if is_lacking(count.population))
    losses = Losses(people, measures.populations_judged(verdict_rows, crowd), curves, settings.bootstrap.minimum_n)
    exact = len(counts) <= _ENDS_SOUGHT
    runs = earlier_of(inputs, settings.earlier()) if policy.protects and crowd.row_by_row else ()
    joint = together(crowd, pairs, runs, policy) if runs else Joint(people, (), (), ())
    request = Request(joint.people, policy, counts, losses, beside=joint.beside, protect=joint.protect, exact=exact)
    outcome = suppress(request)
    if runs:
        outcome = _beside(request, joint.differing, outcome)
    return Fates(crowd, people, policy, outcome)


def _beside(request: Request, differing: Sequence[Count], outcome: Outcome) -> Outcome:
    """The outcome that reveals nothing of the denied who differ between runs, by counts rounded as coarsely as needed.

    Where no base is coarse enough, the first one, with what it tells among the closed counts.
    """
    revealed = told_decisions(request.people, request.beside, outcome.published, differing)
    for base in request.policy.bases[1:] if revealed and not outcome.closed else ():
        coarser = suppress(replace(request, policy=replace(request.policy, round_to=base)))
        if not coarser.closed and not told_decisions(request.people, request.beside, coarser.published, differing):
            return replace(coarser, beside=outcome.beside + len(revealed))
    return replace(outcome, closed=(*outcome.closed, *revealed))


def _lacking(lacks: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Features with missing values, each with the reason."""
    return [(lack["feature"], lack["reason"]) for lack in lacks]
