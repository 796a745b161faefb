"""Chooses the generator of an audit's counterfactuals by its settings."""

import pyarrow as pa

from tasks.counterfactuals.assumptions import GeneratorAssumptions
from tasks.counterfactuals.generator import Generator
from tasks.counterfactuals.nearest import Lookalikes
from tasks.counterfactuals.scm import World
from tasks.preprocessing.columns import columns_of


def generator_of(
    applicants: tuple[pa.Table, pa.Table, pa.Table], decisions: pa.Table, asked: GeneratorAssumptions
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
