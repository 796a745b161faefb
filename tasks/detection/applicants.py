"""Applicants in problems: their values, decisions on them, and their counterfactuals.

Here belongs how tables, the causal world and the model's decisions are put together for methods that compare real
applicants with imagined ones.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker
from tasks.counterfactuals.assumptions import GeneratorAssumptions
from tasks.counterfactuals.choice import generator_of
from tasks.counterfactuals.generator import Generator
from tasks.detection.counterfactuals import Decided, imagined
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Applicants, Mediated, Problem
from tasks.pipeline.given import ProblemTables
from tasks.preprocessing.columns import columns_of
from tasks.scoring.decider import decider


def asked_again(given: ProblemTables, asked: GeneratorAssumptions) -> Generator | None:
    """What made the counterfactuals, where it can be asked again."""
    if not given.applicants.num_rows:
        return None
    return generator_of((given.applicants, given.encodings, given.memberships), given.decisions, asked)


def known(
    problems: Mapping[str, Problem],
    given: ProblemTables,
    favourable: Bools,
    maker: str,
    asked: GeneratorAssumptions,
    generator: Generator | None,
) -> dict[str, Problem]:
    """The problems with everything that is known of their applicants; crossed attributes know the single ones."""
    columns = columns_of(given.applicants, given.encodings)
    decide = None
    if maker == DecisionMaker.MODEL and asked.model is not None:
        decide = decider(asked.model, given.models, given.encodings, given.decisions)
    decided = Decided(maker if decide or maker == DecisionMaker.LENDER else None, favourable)
    out: dict[str, Problem] = {}
    for p in sorted(asked.protected, key=lambda p: len(p.columns)):
        made = Applicants(
            columns=columns,
            favourable=favourable,
            attribute_columns=p.columns,
            crossed=len(p.columns) > 1,
            singles=_singles(p, asked.protected, out) if len(p.columns) > 1 else (),
        )
        if maker == DecisionMaker.MODEL and given.mediated.num_rows:
            made = replace(made, mediated=_mediated(given, p.name))
        if asked.generator is not None:
            made = replace(made, counterfactuals=imagined(given, p, columns, decided, asked.generator))
        if generator is not None and generator.knows(p.name):
            made = replace(
                made,
                imagine=generator.imagine(p.name, decide),
                edges=generator.edges(p.name),
                reached=generator.reached(p.name),
            )
        out[p.name] = replace(problems[p.name], applicants=made)
    return {p.name: out[p.name] for p in asked.protected}


def _singles(crossed: Protected, protected: tuple[Protected, ...], made: Mapping[str, Problem]) -> tuple[Problem, ...]:
    """The problems of the attributes that a crossed one crosses; none unless each has a problem of its own."""
    single = {p.columns[0]: made[p.name] for p in reversed(protected) if len(p.columns) == 1}
    return tuple(single[c] for c in crossed.columns) if all(c in single for c in crossed.columns) else ()


def _mediated(given: ProblemTables, attribute: str) -> Mediated:
    """The mediators that the stage ``mediate`` left, as what the model would have decided on them."""
    mine, decided = _of(given.mediated, attribute), _of(given.mediated_decisions, attribute)
    frame = mine.select(["row_id", "to_group", "spread", "refusal"]).to_pandas()
    known = decided.select(["row_id", "to_group"]).to_pandas().assign(place=np.arange(decided.num_rows))
    frame = frame.merge(known, on=["row_id", "to_group"], how="left", validate="one_to_one")
    frame["row"] = pd.Series(np.arange(len(given.ids)), index=given.ids).loc[frame["row_id"]].to_numpy()
    frame = frame.sort_values("row", kind="stable")
    place = frame["place"].fillna(-1).to_numpy(np.int64)
    return Mediated(
        row=frame["row"].to_numpy(np.int64),
        spread=frame["spread"].to_numpy(np.float64),
        refusal=frame["refusal"].fillna("").to_numpy(dtype=str),
        flips=_by_network(decided["flips"], place, 0.0) == 1,
        change=_by_network(decided["score_changes"], place, np.nan),
    )


def _by_network(lists: pa.ChunkedArray, place: Longs, otherwise: float) -> Floats:
    """``(s, m)`` out of lists of one length; a place of -1 has none."""
    values = pc.list_flatten(lists).to_numpy().reshape(len(lists) or 1, -1)
    if not values.size:
        return np.full((1, len(place)), otherwise)
    found: Floats = np.where(place >= 0, values[place].T, otherwise)
    return found


def _of(table: pa.Table, attribute: str) -> pa.Table:
    return table.filter(pc.equal(table["protected_attribute"], attribute))
