"""Adjust: the denial ladder, a regression for each block of control columns more, and what it rests on.

It compares applicants with others of like terms, finances and history, as examiners of fair lending do (Munnell and
others 1996). Every rung uses the same rows: those with a value in each control.
"""

from zlib import crc32

import numpy as np
import pyarrow as pa

from schemas.tables.applications import APPLICATIONS, DECISIONS, EXCHANGED_DECISIONS, EXCHANGES, MEMBERSHIPS
from tasks.methods.adjusted.adjust.settings import AdjustSettings, adjust_settings, check_filled, one_sided, words
from tasks.methods.adjusted.tables import ADJUSTED_EXCHANGED, TABLES
from tasks.pipeline.stage import OwnStage, Produced, stage


@stage(reads=(APPLICATIONS, DECISIONS, MEMBERSHIPS, EXCHANGES, EXCHANGED_DECISIONS), writes=TABLES, balanced=False)
def adjust(
    applications: pa.Table,
    decisions: pa.Table,
    memberships: pa.Table,
    exchanges: pa.Table,
    exchanged_decisions: pa.Table,
    *,
    settings: AdjustSettings,
) -> Produced:
    """The ladder of every decision maker and protected attribute, and what a given model does with one exchanged.

    Raises:
        SpecError: a control that the spec names has values on one side of the decision alone.
    """
    from tasks.methods.adjusted.adjust.rows import cases, exchanged, judged, of_columns, rows_of  # these load what fits
    from tasks.methods.adjusted.algorithm.ladder import climb

    sided = one_sided(applications, settings.columns)
    check_filled(sided, settings.named)
    tables = {table.name: [table.empty()] for table in TABLES}
    left_out = {name: f"{name} is no control: {words(filled)}" for name, filled in sided.items()}
    for case in cases(applications, decisions, memberships, set(left_out), settings):
        # both decision makers are looked at with the same splits
        rng = np.random.default_rng([settings.seed, crc32(f"adjust|{case.attribute}".encode())])
        case_settings = judged(settings, case)
        ladder = climb(case.applications, case_settings.ladder, settings.level, rng)
        for name, table in (*rows_of(case, ladder, case_settings).items(), *of_columns(case, left_out).items()):
            tables[name].append(table)
    exchange_rows = exchanged(decisions, memberships, exchanges, exchanged_decisions, settings)
    tables[ADJUSTED_EXCHANGED.name].append(exchange_rows)
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()})


OWN_STAGE = OwnStage(stage=adjust, settings=adjust_settings)
