"""Builds the problems of methods from tables: one for each decision maker and protected attribute.

Scope: the rows to explain, the candidates for counterfactuals, and the arrays of both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.limits import Bootstrap
from schemas.audit.partition import Sampling, as_sampled
from schemas.audit.spec import Explain
from schemas.terms import DecisionMaker
from tasks.counterfactuals.assumptions import GeneratorAssumptions
from tasks.detection import applicants, sampling
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.problem import FeasibilityGraph, Problem
from tasks.pipeline.given import ProblemTables
from tasks.pipeline.registry import METHODS
from tasks.preprocessing.groups import groups_of
from tasks.scoring import explanations

_NO_EDGES = np.zeros(0, np.int32), np.zeros(0)


class ProblemSettings(GeneratorAssumptions, Protocol):
    """Settings of the problems."""

    @property
    def method(self) -> str:
        """Whose problems they are."""

    @property
    def explain(self) -> Explain:
        """Whose decisions are explained."""

    @property
    def logged(self) -> tuple[str, ...]:
        """Columns that regressions take the logarithm of."""

    @property
    def bootstrap(self) -> Bootstrap:
        """Draws of the intervals."""

    @property
    def seed(self) -> int:
        """By which models are fitted, and who is asked in a large problem."""

    @property
    def sampling(self) -> Sampling | None:
        """How many are asked at most, of a method that asks a sample; None: everybody."""

    @property
    def imagines_everybody(self) -> bool:
        """Whether counterfactuals of all rows are wanted, and not only of those that are asked."""


@dataclass(frozen=True)
class Case:
    """A problem with what its arrays stand for."""

    decision_maker: str
    attribute: str
    ids: "np.ndarray[Any, Any]"
    problem: Problem
    sampled: Mapping[int, str] = field(default_factory=dict)
    """By number of the group how many are asked, or are in the graph, of how many; not where all are."""
    weights: Floats | None = None
    """``(n,)`` how many rows each stands for; None: itself alone."""
    repeats: tuple["Case", ...] = ()
    """The same on other draws of the rows, for a method that looks at draws."""


def cases(given: ProblemTables, asked: ProblemSettings) -> Iterator[Case]:
    """One case for each decision maker whose decisions are explained, and each protected attribute."""
    if given.draws == 1:
        yield from _cases(given, asked)
        return
    whole = groups_of(given.memberships, given.ids, asked.protected)
    for first, *others in zip(*(_cases(given.of_draw(draw), asked) for draw in range(given.draws)), strict=True):
        said = as_sampled(len(first.ids), given.features.num_rows)
        yield replace(
            first,
            sampled=dict.fromkeys(range(len(first.problem.groups)), said),
            weights=sampling.weights(first.problem, whole[first.attribute]),
            repeats=tuple(others),
        )


def _cases(given: ProblemTables, asked: ProblemSettings) -> Iterator[Case]:
    ids = given.ids
    encoded = np.column_stack([given.features[name].to_numpy() for name in given.features.column_names[1:]])
    node, graph = _graph(given)
    grouped = groups_of(given.memberships, ids, asked.protected)
    groups = {name: each for name, each in grouped.items() if each.compared}
    who = sampling.asked_of(groups, ids, asked.sampling, asked.seed)
    generator = applicants.asked_again(given, asked)
    for maker, frame in decided(given.decisions, asked.explain):
        made = pd.DataFrame({"row_id": ids}).merge(frame, on="row_id", validate="one_to_one")
        factual, candidate = explained_and_candidates(made, maker, asked.explain)
        shared = Problem(
            encoded=encoded,
            feature_of_column=given.encodings["feature_index"].to_numpy(),
            features=tuple(dict.fromkeys(given.encodings["feature"].to_pylist())),
            group=np.zeros(len(ids), np.int32),
            groups=(),
            reference=0,
            factual=factual,
            candidate=candidate,
            node=node,
            graph=graph,
            resamples=asked.bootstrap.draws,
            look_into=explanations.look_into(given, encoded, maker, asked.model),
            refit=explanations.refit(given, maker, asked.model, asked.seed),
        )
        problems = {
            name: replace(shared, **vars(each), own=METHODS[asked.method].own(given, maker, name), asked=who.get(name))
            for name, each in groups.items()
        }
        if given.applicants.num_rows:
            favourable = made["favourable"].to_numpy()
            some = None if asked.imagines_everybody else sampling.drawn(problems.values())
            problems = applicants.known(problems, given, favourable, maker, asked, generator, asked.logged, some)
        for name, problem in problems.items():
            weights = None if problem.asked is None else problem.asked.weights
            yield Case(maker, name, ids, problem, sampling.said(problem), weights)


def decided(decisions: pa.Table, explain: Explain) -> list[tuple[str, pd.DataFrame]]:
    """The decisions of every decision maker who is explained, by name."""
    frames = decisions.to_pandas().groupby("decision_maker")
    return [(str(maker), frame) for maker, frame in sorted(frames) if maker in explain.decision_makers]


def explained_and_candidates(decided: pd.DataFrame, maker: str, explain: Explain) -> tuple[Bools, Bools]:
    """Which rows are explained, and which may serve as their counterfactuals.

    The lender's own decisions have no error to speak of, so all of its unfavourable decisions are explained.
    """
    favourable, open_ = decided["favourable"].to_numpy(), decided["explained"].to_numpy()
    factual = ~favourable & open_
    candidate = favourable & open_
    if maker == DecisionMaker.MODEL:
        if explain.factuals == "false_negatives":
            factual &= decided["outcome"].to_numpy()
        if explain.candidate_score is not None:
            candidate &= decided["score"].to_numpy() > explain.candidate_score
    return factual, candidate


def _graph(given: ProblemTables) -> tuple[Ints, FeasibilityGraph]:
    """The node of every row and the graph, whose edges are stored by ascending source and destination."""
    rows, edges = given.features.num_rows, given.edges
    if not given.nodes.num_rows:
        return np.arange(rows, dtype=np.int32), FeasibilityGraph(np.zeros(rows + 1, np.int64), *_NO_EDGES)
    frame = given.features.select(["row_id"]).to_pandas()
    node = frame.merge(given.nodes.to_pandas(), on="row_id", validate="one_to_one")["node"].to_numpy()
    indptr = np.searchsorted(edges["source"].to_numpy(), np.arange(int(node.max()) + 2)).astype(np.int64)
    return node, FeasibilityGraph(indptr, edges["destination"].to_numpy(), edges["distance"].to_numpy())
