"""Stage ``ablate``: repeats the search for recourse with each constraint lifted, and measures connectivity by epsilon.

It shows which rule leaves whom without recourse (FGCE, Table VI, Figures 1 and 5), as a thought experiment about the
graph. Connectivity depends on the applications and not on the decision maker: it is stored once, with the lender.

The search is also repeated on sets of a group's size whose labels were drawn within propensity strata, for the p of
its infeasible share (specs of verdicts, section 4).

Both of the former are measured again on the reference group at the size of every smaller group (specs of FGCE,
'Epsilon and size').
"""

import pyarrow as pa

from schemas.tables.applications import DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS
from schemas.tables.counterfactuals import FEASIBILITY_FACTS, FEASIBILITY_NODES
from schemas.tables.findings import AGGREGATES, DRAWS, TALLIES
from tasks.methods.fgce.ablate.settings import AblateSettings, ablate_settings
from tasks.pipeline.stage import OwnStage, Produced, stage


@stage(
    reads=(FEATURES, ENCODINGS, MEMBERSHIPS, DECISIONS, FEASIBILITY_FACTS, FEASIBILITY_NODES),
    writes=(TALLIES, AGGREGATES, DRAWS),
    balanced=False,
)
def ablate(
    features: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    facts: pa.Table,
    nodes: pa.Table,
    *,
    settings: AblateSettings,
) -> Produced:
    """Computes infeasible share and burden without each constraint, connectivity by epsilon, and relabelled shares.

    Of a large audit the rows are those of the first draw of the graph.
    """
    from tasks.methods.fgce.ablate.searches import searched  # loads numba

    return searched(features, encodings, memberships, decisions, facts, nodes, settings)


OWN_STAGE = OwnStage(stage=ablate, settings=ablate_settings)
