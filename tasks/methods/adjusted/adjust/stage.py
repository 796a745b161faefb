"""Adjust: the denial ladder, a regression for each block of control columns more, and what it rests on.

It compares applicants with others of like terms, finances and history, as examiners of fair lending do (Munnell and
others 1996). Every rung uses the same rows: those with a value in each control. The judged effect of the lender's
decisions is examined besides: parts, files left out, applications without a decision, places.
"""

from zlib import crc32

import numpy as np
import pyarrow as pa

from schemas.tables.applications import APPLICATIONS, DECISIONS, EXCHANGED_DECISIONS, EXCHANGES, MEMBERSHIPS
from schemas.tables.readings import ABANDONED, ABANDONED_MEMBERSHIPS, COPIED_ROWS, JUDGED_EFFECTS, WRITTEN_BY_ADJUST
from schemas.terms import DecisionMaker
from tasks.methods.adjusted.adjust.settings import AdjustSettings, adjust_settings, check_filled, words
from tasks.methods.adjusted.tables import ADJUSTED_EXCHANGED, TABLES
from tasks.pipeline.stage import OwnStage, Produced, stage

CHOICES_ROWS = 20_000
"""Of more applications the effect by other choices is left to `evenhand stability`."""


@stage(
    reads=(
        *(APPLICATIONS, DECISIONS, MEMBERSHIPS, EXCHANGES, EXCHANGED_DECISIONS),
        *(COPIED_ROWS, ABANDONED, ABANDONED_MEMBERSHIPS),
    ),
    writes=(*TABLES, *WRITTEN_BY_ADJUST),
    balanced=False,
)
def adjust(
    applications: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    exchanges: pa.Table,
    exchanged_decisions: pa.Table,
    copied_rows: pa.Table,
    abandoned: pa.Table,
    abandoned_memberships: pa.Table,
    *,
    settings: AdjustSettings,
) -> Produced:
    """The ladder of every decision maker and protected attribute, and what a given model does with one exchanged.

    Raises:
        SpecError: a control that the spec names has values on one side of the decision alone.
    """
    # these load what fits
    from tasks.methods.adjusted.adjust.examination import Examination, Sample, effects_of, tables_of, unjudged
    from tasks.methods.adjusted.adjust.rows import (
        cases,
        comparator_rows,
        exchanged,
        judged,
        of_columns,
        rows_of,
        table_of,
    )
    from tasks.methods.adjusted.algorithm.choices import grid
    from tasks.methods.adjusted.algorithm.examined import examine
    from tasks.methods.adjusted.algorithm.ladder import climb, primary_rung

    sample = Sample.of(applications, copied_rows, memberships, abandoned, abandoned_memberships, settings)
    check_filled(sample.sided, settings.named)
    tables = {table.name: [table.empty()] for table in (*TABLES, *WRITTEN_BY_ADJUST)}
    left_out = {name: f"{name} is no control: {words(filled)}" for name, filled in sample.sided.items()}
    for case in cases(sample.applications, decisions, memberships, set(left_out), settings):
        # both decision makers are looked at with the same splits
        rng = np.random.default_rng([settings.seed, crc32(f"adjust|{case.attribute}".encode())])
        case_settings = judged(settings, case)
        ladder = climb(case.applications, case_settings.ladder, settings.level, rng)
        if primary_rung(case.applications, case_settings.ladder) is None:
            ladder = ladder.extended(unjudged(ladder))
        elif case.decision_maker == DecisionMaker.LENDER and (of := Examination.of(case, sample, settings)):
            results = examine(of.files, of.rules, of.rng())
            ladder = ladder.extended(effects_of(of, results, ladder))
            small = len(of.files.denied) <= CHOICES_ROWS
            chosen = grid(of.files, of.rules) if small and settings.ladder.judged == "expected" else []
            rows = tables_of(of.identity, of.files, results, of.cluster, settings.limits.points, chosen)
            for table in WRITTEN_BY_ADJUST:
                if table is not JUDGED_EFFECTS or settings.ladder.judged == "expected":
                    tables[table.name].append(table_of(table, rows[table.name]))
        for name, table in (*rows_of(case, ladder, case_settings).items(), *of_columns(case, left_out).items()):
            tables[name].append(table)
    exchange_rows = exchanged(decisions, memberships, exchanges, exchanged_decisions, settings)
    tables[ADJUSTED_EXCHANGED.name].append(exchange_rows)
    for name, table in comparator_rows(sample.applications, memberships, settings):
        tables[name].append(table)
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()})


OWN_STAGE = OwnStage(stage=adjust, settings=adjust_settings)
