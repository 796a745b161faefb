"""Adjust: the denial ladder, a regression for each block of control columns more, and what it rests on.

It compares applicants with others of like terms, finances and history, as examiners of fair lending do (Munnell and
others 1996). Every rung uses the same rows: those with a value in each control. The judged effect of the lender's
decisions is examined besides: parts, files left out, applications without a decision, places.
"""

from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.applications import APPLICATIONS, DECISIONS, EXCHANGED_DECISIONS, EXCHANGES, MEMBERSHIPS
from schemas.tables.readings import ABANDONED, ABANDONED_MEMBERSHIPS, COPIED_ROWS, JUDGED_EFFECTS, WRITTEN_BY_ADJUST
from schemas.terms import DecisionMaker
from tasks.methods.adjusted.adjust.settings import AdjustSettings, adjust_settings, check_filled, one_sided, words
from tasks.methods.adjusted.tables import ADJUSTED_EXCHANGED, TABLES
from tasks.pipeline.stage import OwnStage, Produced, stage
from tasks.preprocessing.columns import without_copies


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
    from tasks.methods.adjusted.adjust.examination import effect_of, files_of, rules_of, tables_of, unjudged
    from tasks.methods.adjusted.adjust.rows import cases, exchanged, judged, of_columns, rows_of, table_of
    from tasks.methods.adjusted.algorithm.examined import examine
    from tasks.methods.adjusted.algorithm.ladder import climb, primary_rung

    applications = without_copies(applications, copied_rows)
    sided = one_sided(applications, settings.columns)
    check_filled(sided, settings.named)
    tables = {table.name: [table.empty()] for table in (*TABLES, *WRITTEN_BY_ADJUST)}
    left_out = {name: f"{name} is no control: {words(filled)}" for name, filled in sided.items()}
    by_name = {p.name: p for p in settings.protected}
    everybody = memberships
    if len(abandoned):  # the groups of refused rows stand in both tables
        decided = pc.is_in(memberships["row_id"], value_set=applications["row_id"].combine_chunks())
        everybody = pa.concat_tables([memberships.filter(decided), abandoned_memberships])
    for case in cases(applications, decisions, memberships, set(left_out), settings):
        # both decision makers are looked at with the same splits
        rng = np.random.default_rng([settings.seed, crc32(f"adjust|{case.attribute}".encode())])
        case_settings = judged(settings, case)
        ladder = climb(case.applications, case_settings.ladder, settings.level, rng)
        rung = primary_rung(case.applications, case_settings.ladder)
        if rung is None:
            ladder = ladder.extended(unjudged(ladder))
        elif case.decision_maker == DecisionMaker.LENDER:
            p, without = by_name[case.attribute], set(left_out) | set(one_sided(applications, settings.splits))
            files, cluster = files_of(applications, abandoned, everybody, p, without, case_settings)
            rng = np.random.default_rng([settings.seed, crc32(f"parts|{case.attribute}".encode())])
            results = examine(files, rules_of(settings), rng)
            blocks = tuple(block.name for block in case.applications.blocks[:rung])
            ladder = ladder.extended(effect_of(of_group, rung, blocks, ladder) for of_group in results)
            identity = {"decision_maker": case.decision_maker, "protected_attribute": case.attribute}
            rows = tables_of(identity, files, results, cluster, settings.limits.points)
            for table in WRITTEN_BY_ADJUST:
                if table is not JUDGED_EFFECTS or settings.ladder.judged == "expected":
                    tables[table.name].append(table_of(table, rows[table.name]))
        for name, table in (*rows_of(case, ladder, case_settings).items(), *of_columns(case, left_out).items()):
            tables[name].append(table)
    exchange_rows = exchanged(decisions, memberships, exchanges, exchanged_decisions, settings)
    tables[ADJUSTED_EXCHANGED.name].append(exchange_rows)
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()})


OWN_STAGE = OwnStage(stage=adjust, settings=adjust_settings)
