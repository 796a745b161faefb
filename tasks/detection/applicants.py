"""Applicants in problems: their values, decisions on them, and their counterfactuals.

Scope: joins tables, the causal model and the model's decisions for methods that compare real applicants with
counterfactual ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker
from tasks.counterfactuals.assumptions import GeneratorAssumptions
from tasks.counterfactuals.choice import generator_of
from tasks.counterfactuals.generator import Generator
from tasks.detection.counterfactuals import Decided, imagined
from tasks.numerics.arrays import Bools
from tasks.numerics.problem import Applicants, Problem
from tasks.pipeline.given import ProblemTables
from tasks.preprocessing.columns import columns_of
from tasks.scoring.decider import decider


def asked_again(given: ProblemTables, asked: GeneratorAssumptions) -> Generator | None:
    """The generator of the counterfactuals, if it can regenerate them."""
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
    logged: tuple[str, ...] = (),
    some: Bools | None = None,
) -> dict[str, Problem]:
    """The problems with everything that is known of their applicants; crossed attributes know the single ones.

    Args:
        problems: By protected attribute.
        given: Tables.
        favourable: ``(n,)`` decisions.
        maker: Who made them.
        asked: How counterfactuals are made.
        generator: What makes them again; None if nothing can.
        logged: Columns that regressions take the logarithm of.
        some: ``(n,)`` the rows of which counterfactuals are wanted; None: all.
    """
    columns = replace(columns_of(given.applicants, given.encodings), logged=logged)
    decide = None
    if maker == DecisionMaker.MODEL and asked.model is not None:
        decide = decider(asked.model, given.models, given.encodings, given.decisions)
    decided = Decided(maker if decide or maker == DecisionMaker.LENDER else None, favourable)
    out: dict[str, Problem] = {}
    protected = [p for p in asked.protected if p.name in problems]
    for p in sorted(protected, key=lambda p: len(p.columns)):
        made = Applicants(
            columns=columns,
            favourable=favourable,
            attribute_columns=p.columns,
            crossed=len(p.columns) > 1,
            singles=_singles(p, protected, out) if len(p.columns) > 1 else (),
        )
        if asked.generator is not None:
            made = replace(made, counterfactuals=imagined(given, p, columns, decided, asked.generator, some))
        if generator is not None and generator.knows(p.name):
            made = replace(
                made,
                imagine=generator.imagine(p.name, decide),
                edges=generator.edges(p.name),
                reached=generator.reached(p.name),
            )
        out[p.name] = replace(problems[p.name], applicants=made)
    return {p.name: out[p.name] for p in protected}


def _singles(crossed: Protected, protected: Sequence[Protected], made: Mapping[str, Problem]) -> tuple[Problem, ...]:
    """The problems of the attributes that a crossed one crosses; none unless each has a problem of its own."""
    single = {p.columns[0]: made[p.name] for p in reversed(protected) if len(p.columns) == 1}
    return tuple(single[c] for c in crossed.columns) if all(c in single for c in crossed.columns) else ()
