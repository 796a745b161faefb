"""Builds the CST authors' problem from an audit spec, by the stages and the causal model of an audit.

Scope: the two differences from an audit. The authors generate counterfactuals of all rows, not of complainants alone,
because the z-scores of the counterfactual data depend on it. And they merge all other groups into one reference group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from schemas.audit.causal import CausalGraph
from schemas.audit.spec import AuditSpec
from tasks.counterfactuals.algorithm.scm import abduction
from tasks.counterfactuals.scm import World
from tasks.detection import stage as detect
from tasks.detection.problems import cases
from tasks.methods.cst.algorithm.comparisons import applicants_of
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Longs
from tasks.numerics.problem import Counterfactuals, Problem
from tasks.pipeline.given import ProblemTables
from tasks.proof.plain import tables_through
from tasks.scoring.decider import Decide, decider

Coefficients = Mapping[tuple[str, str], float]
"""By column, and by its cause or 'intercept'."""


@dataclass(frozen=True)
class Scene:
    """One protected attribute of an audit, before counterfactuals are generated."""

    problem: Problem
    world: World
    decide: Decide | None

    def imagined(self, attribute: str, rows: Longs) -> Counterfactuals:
        """Generates the counterfactuals of rows ``(r,)`` as members of the reference group, with decisions on them."""
        return self.world.imagine(attribute, self.decide)(rows, self.problem.group, None)

    def against(self, attribute: str, group: int) -> "Scene":
        """Merges all other groups into the reference group, for the causal mechanisms as well."""
        labels = np.where(self.problem.group == group, group, self.problem.reference).astype(np.int32)
        groups = {**self.world.groups, attribute: replace(self.world.groups[attribute], group=labels)}
        return Scene(replace(self.problem, group=labels), replace(self.world, groups=groups), self.decide)


@dataclass(frozen=True)
class Prepared:
    """The problem of one protected attribute and one group of complainants."""

    problem: Problem
    """It has two groups: the complainants', and everybody else under the name of the reference group."""
    group: int
    """Number of the complainants' group."""
    coefficients: Coefficients
    settings: CstSettings


def scene(spec: AuditSpec, attribute: str) -> Scene:
    """Runs the stages of an audit up to the model's decisions, and fits the world of its causal graph."""
    tables = ProblemTables.of(tables_through(spec, "score"))
    # without a causal graph the cases do not look for the counterfactuals that an audit would have made by now
    everybody = {"causal_graph": CausalGraph(), "sampling": None}
    nothing_assumed = detect.settings_of(spec.model_copy(update=everybody), "cst")
    problem = next(case.problem for case in cases(tables, nothing_assumed) if case.attribute == attribute)
    columns = applicants_of(problem).columns
    world = World.of(columns, tables.memberships, tables.ids, detect.settings_of(spec, "cst"))
    decide = decider(spec.model, tables.models, tables.encodings, tables.decisions)
    return Scene(problem, world, decide)


def prepared(spec: AuditSpec, attribute: str, group: str) -> Prepared:
    """Builds the authors' problem: one group against everybody else, with a counterfactual for every row."""
    settings = spec.methods.of(CstSettings)
    if settings is None:
        raise ValueError(f"{spec.name} does not ask for CST")
    everybody = scene(spec, attribute)
    own = everybody.problem.groups.index(group)
    of = everybody.against(attribute, own)
    imagined = of.imagined(attribute, np.arange(len(of.problem.group)))
    alone = replace(applicants_of(of.problem), counterfactuals=imagined, crossed=False, singles=())
    fitted, roots = of.world.fit(attribute, of.problem.group)
    references = {name: of.world.groups[name].groups[of.world.groups[name].reference] for name in roots.names}
    return Prepared(
        problem=replace(of.problem, applicants=alone),
        group=own,
        coefficients=against_reference(abduction.terms(fitted), references),
        settings=settings,
    )


def against_reference(
    terms: Mapping[str, Mapping[str, float]], references: Mapping[str, str]
) -> dict[tuple[str, str], float]:
    """Converts coefficients to the paper's form: the effect of not belonging to the reference group.

    A fit leaves out the group that comes first by name, and in all data sets of the paper that is not the reference.

    Args:
        terms: Column -> 'intercept', a cause, or 'attribute=group' -> coefficient.
        references: Protected attribute -> its reference group.
    """
    found: dict[tuple[str, str], float] = {}
    for column, of_column in terms.items():
        numbers = {term: value for term, value in of_column.items() if "=" not in term}
        effects = {name: -of_column[f"{name}={group}"] for name, group in references.items()}
        found |= {(column, term): value for term, value in (numbers | effects).items()}
        found[column, "intercept"] -= sum(effects.values())
    return found
