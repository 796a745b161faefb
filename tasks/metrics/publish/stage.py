"""Stage publish: decides once what may be told of a run, and writes the tables that every output reads.

``crowd`` makes a row for each record of the source, ``algorithm`` decides what becomes of every count of people, and
``fates`` is asked for it by the modules that publish the tables: measures here, ``judged``, ``exclusions``, ``facts``.
"""

import pyarrow as pa

from schemas.audit.spec import AuditSpec, Bootstrap, Disclosure, Protected, StageSettings
from schemas.table import Table
from schemas.tables.applications import (
    ANY,
    APPLICATIONS,
    DECISIONS,
    ENCODINGS,
    MEMBERSHIPS,
    MISSINGNESS,
    MODEL_REFITS,
    REFUSALS,
)
from schemas.tables.findings import AGGREGATES, FINDINGS, TALLIES
from schemas.tables.measures import MEASURES
from schemas.tables.publication import (
    PUBLICATION,
    PUBLISHED_FINDINGS,
    PUBLISHED_MISSINGNESS,
    PUBLISHED_WATERFALL,
    published,
)
from schemas.tables.published import FACTS, PUBLISHED_AGREEMENT, PUBLISHED_MEASURES, PUBLISHED_VERDICTS
from schemas.tables.verdicts import AGREEMENT, VERDICTS
from tasks.metrics.publish import columns, counted, exclusions, facts, judged, measured
from tasks.metrics.publish.algorithm.losses import Losses
from tasks.metrics.publish.algorithm.outcome import Request
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.metrics.publish.algorithm.suppression import suppress
from tasks.metrics.publish.crowd import Crowd, counts_of, is_lacking
from tasks.metrics.publish.fates import Fates
from tasks.metrics.tallied import Tallied
from tasks.pipeline.registry import tables_shown
from tasks.pipeline.stage import Produced, stage

_ENDS_SOUGHT = 500
"""Up to so many counts the ends of what can be told are sought; of more, as far as the pass had to."""


class PublishSettings(StageSettings):
    """Settings of the disclosure pass."""

    protected: tuple[Protected, ...]
    disclosure: Disclosure
    bootstrap: Bootstrap
    seed: int


def settings_of(spec: AuditSpec) -> PublishSettings:
    """The stage's settings."""
    return PublishSettings.of(spec)


READ: tuple[Table, ...] = (
    *(MEASURES, VERDICTS, AGREEMENT, APPLICATIONS, MEMBERSHIPS, REFUSALS, DECISIONS, MODEL_REFITS),
    *(TALLIES, AGGREGATES, FINDINGS, MISSINGNESS, *FACTS, *tables_shown()),
)
WRITTEN: tuple[Table, ...] = (
    *(PUBLICATION, PUBLISHED_MEASURES, PUBLISHED_VERDICTS, PUBLISHED_AGREEMENT, PUBLISHED_WATERFALL),
    *(PUBLISHED_MISSINGNESS, PUBLISHED_FINDINGS, *(published(each) for each in (*FACTS, *tables_shown()))),
)


@stage(reads=READ, writes=WRITTEN, resources=("metrics/sql/*.sql",), balanced=False)
def publish(*tables: pa.Table, settings: PublishSettings) -> Produced:
    """The fate of every number of people, and the published tables."""
    read = {declared.name: table for declared, table in zip(READ, tables, strict=True)}
    lacks, said = read[MISSINGNESS.name].to_pylist(), read[VERDICTS.name].to_pylist()
    fates = fates_of(read, lacks, said, settings)
    tallied = Tallied.of(*(read[t.name] for t in (APPLICATIONS, DECISIONS, MEMBERSHIPS, TALLIES, AGGREGATES)))
    hidden = measured.hidden(tallied, fates)
    out = {
        PUBLICATION.name: fates.table(),
        PUBLISHED_MEASURES.name: measured.table(read, tallied, hidden, fates, settings.bootstrap, settings.seed),
        PUBLISHED_VERDICTS.name: judged.verdicts(said, hidden, fates),
        PUBLISHED_AGREEMENT.name: judged.agreement(read[AGREEMENT.name].to_pylist(), said, hidden, fates),
        PUBLISHED_WATERFALL.name: exclusions.waterfall(fates),
        PUBLISHED_MISSINGNESS.name: exclusions.missingness(lacks, fates),
        PUBLISHED_FINDINGS.name: counted.findings(read[FINDINGS.name], fates),
    }
    read |= {ENCODINGS.name: columns.encodings(read[ENCODINGS.name], read[APPLICATIONS.name], fates.policy)}
    return Produced(out | facts.tables([(t, read[t.name]) for t in (*FACTS, *tables_shown())], fates))


def fates_of(
    read: dict[str, pa.Table], lacks: list[dict[str, str]], said: list[dict[str, str]], settings: PublishSettings
) -> Fates:
    """What becomes of every count of people: one pass over all of them."""
    pairs = [(lack["feature"], lack["reason"]) for lack in lacks]
    features = tuple(dict.fromkeys(feature for feature, reason in pairs if reason != ANY))
    crowd = Crowd.of(
        read[APPLICATIONS.name],
        read[MEMBERSHIPS.name],
        read[REFUSALS.name],
        read[DECISIONS.name],
        settings.protected,
        features,
    )
    people, policy = crowd.people(pairs), POLICIES[settings.disclosure.profile]
    counts = counts_of(people)
    curves = frozenset(count.population for count in counts if is_lacking(count.population))
    losses = Losses(people, judged.populations_judged(said, crowd), curves, settings.bootstrap.minimum_n)
    exact = len(counts) <= _ENDS_SOUGHT
    return Fates(crowd, people, policy, suppress(Request(people, policy, counts, losses, exact=exact)))
