"""Which generator imagines the applicants of an audit."""

import pyarrow as pa

from tasks._causal import World
from tasks._columns import columns_of
from tasks._given import Assumed
from tasks._imagining import Generator
from tasks._matched import Lookalikes


def generator_of(
    applicants: tuple[pa.Table, pa.Table, pa.Table], decisions: pa.Table, asked: Assumed
) -> Generator | None:
    """The generator that the settings ask for; None where they assume nothing, or it cannot be asked again.

    Args:
        applicants: the tables ``applicants``, ``encodings`` and ``memberships``.
        decisions: on the same rows.
        asked: the generator, and what it needs.
    """
    handed_in, encodings, memberships = applicants
    if asked.generator == "nearest":
        return Lookalikes.of(applicants, decisions, asked)
    if asked.generator == "scm" and asked.causal_graph.edges:
        return World.of(columns_of(handed_in, encodings), memberships, handed_in["row_id"].to_numpy(), asked)
    return None
