"""Declaration of a method: inputs, planned measures, the parts of its folder, and its statistics as tables."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.methods import MethodSettings
from schemas.audit.partition import SAMPLED
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from schemas.table import Table
from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, FEATURES, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import (
    COUNTERFACTUAL_DECISIONS,
    COUNTERFACTUALS,
    FEASIBILITY_EDGES,
    FEASIBILITY_NODES,
    MEDIATED,
    MEDIATED_DECISIONS,
)
from schemas.tables.findings import AGGREGATES, DRAWS, TALLIES
from schemas.terms import NO_FEATURE, DecisionMaker, Theory
from tasks.numerics.results import Aggregate, Draws, Inference, Tally
from tasks.pipeline.stage import OwnStage

# --------------------------------------------------------------------------------------------------------------------
# Rows of the tables ``tallies``, ``aggregates`` and ``draws`` from the statistics of methods.
#
# Every stage with statistics of groups uses it, so that they look the same.


@dataclass(frozen=True)
class Origin:
    """Identity of a statistic, apart from its group."""

    method: str
    decision_maker: str
    protected_attribute: str
    groups: tuple[str, ...]
    """Names of the groups, by number."""
    sampled: Mapping[int, str] = field(default_factory=dict)
    """How many members of a group were asked, of how many; of groups all of whom were, nothing."""

    def tallies(self, tallies: Sequence[Tally]) -> pa.Table:
        """One row for each value of each tally."""
        sizes = [len(tally.values) for tally in tallies]
        named = {**self._named(tallies), **self._wanted(tallies), "share": [tally.share for tally in tallies]}
        return TALLIES.build(
            **{name: np.repeat(np.array(values, dtype=object), sizes) for name, values in named.items()},
            value=np.concatenate([np.zeros(0), *(tally.values for tally in tallies)]),
            count=np.concatenate([np.zeros(0, np.int64), *(tally.counts for tally in tallies)]),
        )

    def aggregates(self, aggregates: Sequence[Aggregate]) -> pa.Table:
        """One row for each aggregate."""
        return AGGREGATES.build(
            **self._named(aggregates),
            **self._wanted(aggregates),
            value=[aggregate.value for aggregate in aggregates],
            n=[aggregate.n for aggregate in aggregates],
            events=[aggregate.events for aggregate in aggregates],
            reason=[aggregate.reason or None for aggregate in aggregates],
            replicates=[aggregate.replicates for aggregate in aggregates],
            low=[aggregate.interval[0] if aggregate.interval else None for aggregate in aggregates],
            high=[aggregate.interval[1] if aggregate.interval else None for aggregate in aggregates],
            **_inferred([aggregate.inference for aggregate in aggregates]),
        )

    def draws(self, statistics: Sequence[Draws]) -> pa.Table:
        """One row for each value of each measure drawn."""
        sizes = [len(statistic.values) for statistic in statistics]
        named = self._named(statistics)
        named.pop("subgroup")
        named |= {
            "reason": [statistic.reason or None for statistic in statistics],
            "reference": [statistic.reference for statistic in statistics],
        }
        return DRAWS.build(
            **{name: np.repeat(np.array(values, dtype=object), sizes) for name, values in named.items()},
            draw=np.concatenate([np.zeros(0, np.int64), *(np.arange(size) for size in sizes)]),
            value=np.concatenate([np.zeros(0), *(statistic.values for statistic in statistics)]),
        )

    def _named(self, statistics: Sequence[Tally | Aggregate | Draws]) -> dict[str, list[Any]]:
        return {
            "method": [self.method] * len(statistics),
            "decision_maker": [self.decision_maker] * len(statistics),
            "protected_attribute": [self.protected_attribute] * len(statistics),
            "group": [self.groups[statistic.group] for statistic in statistics],
            "subgroup": [getattr(statistic, "subgroup", 0) for statistic in statistics],
            "measure": [statistic.measure for statistic in statistics],
            "parameters": [json.dumps(self._parameters(statistic), sort_keys=True) for statistic in statistics],
        }

    def _parameters(self, statistic: Tally | Aggregate | Draws) -> dict[str, float | str]:
        return {
            **statistic.parameters,
            **({SAMPLED: self.sampled[statistic.group]} if statistic.group in self.sampled else {}),
        }

    def _wanted(self, statistics: Sequence[Tally | Aggregate]) -> dict[str, list[bool]]:
        return {
            "headline": [statistic.headline for statistic in statistics],
            "compared": [statistic.compared for statistic in statistics],
        }


COUNTED = ("n_used", "events_used", "n_reference_used", "events_reference_used")
"""Columns of ``Inference.counts``."""


def _inferred(inferences: Sequence[Inference | None]) -> dict[str, list[Any]]:
    """Columns of what verdicts rest on; null where there is nothing, and for a number that is not finite."""
    names = ("se", "se_above", "scale", "df", "p", "robustness", "unseen", "raised", "lowered")
    rows = [{} if inference is None else vars(inference) for inference in inferences]
    counts = [None if inference is None else inference.counts for inference in inferences]
    return {
        **{name: [_finite(row.get(name)) for row in rows] for name in names},
        **{name: [of_row and of_row[place] for of_row in counts] for place, name in enumerate(COUNTED)},
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --------------------------------------------------------------------------------------------------------------------
# A planned measure: its parameters, the range of its values, and its comparisons.


Values = tuple[float | str, ...] | None
"""Values that a parameter takes; None where only the data tell them."""

COMPARED: Final = ("difference", "ratio")
"""Suffixes of what a tally compared with the reference group's has beside it."""

RANGE: Final = "is a range of draws"
NO_INTERVAL: Final = "has no interval"
COMPARES_WHOLES: Final = "compares two groups, each as a whole, without an interval"
"""Why a limit on a measure is never judged; see ``tasks.metrics.algorithm.measures``."""

_DRAWN: Final = ("size_matched", "null")

NAMES_OF_BAND: Final[Mapping[str, Values]] = {"from": None, "to": None, "category": None}
"""Parameters of a share by band, of which a band has some."""


@dataclass(frozen=True)
class Form:
    """A measure in one set of parameters."""

    measure: str
    parameters: Mapping[str, Values] = field(default_factory=dict)
    """All that it may have."""
    low: float = 0.0
    high: float = math.inf
    beside: tuple[str, ...] = ()
    """Suffixes of the comparisons that are made of it."""
    makers: tuple[str, ...] = ()
    """Decision makers that it is made of; all whose decisions are explained if none is named."""
    is_aggregate: bool = False
    """Whether it is an aggregate: of the group as a whole, so that what compares it has no interval."""
    unjudged: str = ""
    """Why no limit on it is ever judged; empty where one can be."""

    def named(self) -> Iterator["Form"]:
        """The measure itself and each comparison, under its full name and with its own range."""
        yield self
        for suffix in self.beside:
            low, high = _range(suffix, self.low, self.high)
            why = RANGE if suffix in _DRAWN else COMPARES_WHOLES if self.is_aggregate else ""
            yield Form(f"{self.measure}_{suffix}", self.parameters, low, high, (), self.makers, self.is_aggregate, why)

    def __str__(self) -> str:
        """As a message lists it, such as ``share_positive with k = 5, 10 and variant = st``."""
        descriptions = [f"{name} = {_listed(values)}" for name, values in self.parameters.items()]
        return (
            f"{self.measure} with {' and '.join(descriptions)}"
            if descriptions
            else f"{self.measure} without parameters"
        )


def share(
    measure: str,
    parameters: Mapping[str, Values] | None = None,
    beside: tuple[str, ...] = (),
    makers: tuple[str, ...] = (),
) -> Form:
    """A measure from 0 to 1."""
    return Form(measure, parameters or {}, 0.0, 1.0, beside, makers)


def whole(form: Form, unjudged: str = "") -> Form:
    """The form as an aggregate; one that its method never resamples has no interval, and so is not judged."""
    return replace(form, is_aggregate=True, unjudged=unjudged)


def without_interval(form: Form) -> Form:
    """The form as an aggregate that is never resampled."""
    return whole(form, NO_INTERVAL)


def up_to(number: int) -> Values:
    """1, 2, ..., the number."""
    return tuple(range(1, number + 1))


def _range(suffix: str, low: float, high: float) -> tuple[float, float]:
    if suffix.endswith("difference"):
        return low - high, high - low
    return (0.0, math.inf) if suffix == "ratio" else (low, high)


def _listed(values: Values) -> str:
    if values is None:
        return "(told by the data)"
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return ", ".join(texts if len(texts) <= _MOST else [*texts[: _MOST - 1], "...", texts[-1]])


_MOST: Final = 8


# --------------------------------------------------------------------------------------------------------------------
# Input tables of the problems of methods.


READS = (
    FEATURES,
    ENCODINGS,
    DECISIONS,
    MEMBERSHIPS,
    FEASIBILITY_NODES,
    FEASIBILITY_EDGES,
    APPLICANTS,
    MODELS,
    COUNTERFACTUALS,
    COUNTERFACTUAL_DECISIONS,
    MEDIATED,
    MEDIATED_DECISIONS,
)
"""The tables that detection makes problems of, whatever the method, in the order of ``ProblemTables``."""


@dataclass(frozen=True)
class ProblemTables:
    """Input tables of problems; those that no method of the audit reads are empty."""

    by_name: Mapping[str, pa.Table]
    """All that was given."""
    features: pa.Table
    encodings: pa.Table
    decisions: pa.Table
    memberships: pa.Table
    nodes: pa.Table
    edges: pa.Table
    applicants: pa.Table
    models: pa.Table
    counterfactuals: pa.Table
    reconsidered: pa.Table
    mediated: pa.Table
    mediated_decisions: pa.Table

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> "ProblemTables":
        """From tables by name."""
        return cls(tables, *(tables.get(table.name, table.empty()) for table in READS))

    def of_method(self, table: Table) -> pa.Table:
        """A table that one method alone reads."""
        return self.by_name.get(table.name, table.empty())

    def __post_init__(self) -> None:
        """Hold the rows together: applicants, where there are any, are in the order of the features."""
        if self.applicants.num_rows and not self.applicants["row_id"].equals(self.features["row_id"]):
            raise IntegrityError(
                "applicants and features are not the same rows in the same order; run preprocess again"
            )

    @property
    def draws(self) -> int:
        """How many draws of rows the graph is of; 1 where it is of all rows, or where there is none."""
        return int(pc.max(self.nodes["draw"]).as_py()) + 1 if self.nodes.num_rows else 1

    def of_draw(self, draw: int) -> "ProblemTables":
        """The rows of one draw, with their graph; decisions and groups of all rows stay."""
        nodes = self.nodes.filter(pc.equal(self.nodes["draw"], draw))
        number = nodes["node"].to_numpy()
        first, last = int(number.min()), int(number.max())
        # by chunk: the numbers of all draws in one array would take as much memory again
        before = [np.searchsorted(chunk.to_numpy(), (first, last + 1)) for chunk in self.edges["source"].chunks]
        start, stop = np.sum(before, axis=0).tolist() if before else (0, 0)
        edges = self.edges.slice(start, stop - start)
        for name in ("source", "destination"):
            column = pa.array(edges[name].to_numpy() - np.int32(first))
            edges = edges.set_column(edges.schema.get_field_index(name), edges.schema.field(name), column)
        node = nodes.schema.get_field_index("node")
        nodes = nodes.set_column(node, nodes.schema.field(node), pa.array(number - np.int32(first)))
        row_ids = nodes["row_id"].combine_chunks()
        features, applicants = (
            table.filter(pc.is_in(table["row_id"], row_ids)) for table in (self.features, self.applicants)
        )
        return replace(self, features=features, applicants=applicants, nodes=nodes, edges=edges)

    def of_rows(self, rows: "np.ndarray[Any, np.dtype[np.bool_]]") -> "ProblemTables":
        """Some rows ``(n,)`` with the decisions on them, of a problem without a graph; other tables stay whole."""
        mask = pa.array(rows)
        features, applicants = (
            table.filter(mask) if table.num_rows else table for table in (self.features, self.applicants)
        )
        decisions = self.decisions.filter(pc.is_in(self.decisions["row_id"], features["row_id"].combine_chunks()))
        return replace(self, features=features, applicants=applicants, decisions=decisions)

    @property
    def ids(self) -> "np.ndarray[Any, Any]":
        """``(n,)`` identifiers of the rows."""
        ids: np.ndarray[Any, Any] = self.features["row_id"].to_numpy()
        return ids


# --------------------------------------------------------------------------------------------------------------------
# Declaration of a method, and the parts that its folder provides by name.


DECLARATION, ALGORITHM = "method", "algorithm.detection"
"""Modules of every method's folder."""

REPORT = "report.yaml"
"""File of every method's folder: its question, its measures in words, and what its evidence page shows."""

PROBLEM = "problem"
"""A module of the folders of methods that need more of a problem than others do."""

MITIGATIONS = "mitigations"
"""A module of the folders of methods that offer mitigations."""


@dataclass(frozen=True)
class Judged:
    """A measure by which a theory of harm is judged; its aggregates carry an ``Inference``, and no parameters."""

    theory: Theory
    measure: str
    role: Literal["primary", "adds", "beside"] = "primary"
    """``primary``: decides the state. ``adds``: by its p alone, a breach and never a pass. ``beside``: shown, and told
    where it contradicts the primary one."""
    refitted: bool = False
    """Whether its error counts that a model was fitted to the same rows; else a fitted model has no verdict by it."""
    maker: DecisionMaker | None = None
    """The one decision maker whom the theory is judged of by it; None for all."""
    optional: bool = False
    """Whether an attribute that it is not made of has no row: of a model that cannot be asked, data without loans."""
    limit: str = ""
    """Key in ``verdicts.limits`` of a limit and scale of its own: it then is no other answer to what the primary
    measure answers. Empty: the limit of its theory."""


@dataclass(frozen=True)
class Method:
    """Declaration of a method: its title, its inputs and its measures."""

    name: str
    """That of its folder under ``tasks.methods``, in which all else is found."""
    title: str
    reads: tuple[Table, ...]
    """The tables that it needs beside features, decisions and groups: the stages that write them are then run."""
    measures: tuple[str, ...]
    """The measures that it makes, without those that compare them."""
    headline: Mapping[str, str]
    """Measures that the command prints at its end, with a short title for each."""
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Measures whose shares add up to one over some parameters, and these parameters."""
    generators: Mapping[str, tuple[Table, ...]] = field(default_factory=dict)
    """What can make its counterfactuals, by the setting ``generator``, and the tables that these then are in."""
    of_reference: bool = True
    """Whether it has something to say of a reference group alone; else its measures are of the other groups."""
    shows: tuple[Table, ...] = ()
    """Tables of its own that its chapter of the report reads beside the measures."""
    verdict_measures: tuple[Judged, ...] = ()
    """The theories that it says something of, and by which measure."""
    sampling: Literal["all", "sampled", "pool", "graph"] = "all"
    """Beyond the limits of ``sampling``: everybody all the same; a sample of the complainants of each group
    (``sampling.queries``), compared with everybody or with a pool of rows (``sampling.pool_rows``); or only the rows of
    the graph (``sampling.graph_rows``)."""
    covering: frozenset[str] = frozenset()
    """Measures whose intervals cover as often as they say, by simulation; all others are descriptive."""
    comparable: frozenset[str] = frozenset()
    """Measures whose meaning does not depend on the number of rows, so that partitions of any size can be held beside
    each other; the others only where they were taken at one size."""
    mitigations: tuple[str, ...] = ()
    """Mitigations that an audit can compare (``compare`` of the spec); its module ``mitigations`` trains them by
    ``mitigate(name, fold, seed)``."""
    curves: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Measures with many points, which are arrays of the tables of curves, and the parameters by which a point stays a
    measure: they have the value of the setting of their name, or the point lacks them. None: no point does."""
    grows: str = ""
    """Why the others depend on the number of rows, as a sentence without its full stop."""

    def path_of(self, module: str) -> str:
        """The whole name of a module in its folder."""
        return f"tasks.methods.{self.name}.{module}"

    def module(self, module: str) -> ModuleType:
        """A module of its folder, loaded."""
        return import_module(self.path_of(module))

    @property
    def settings(self) -> type[MethodSettings]:
        """The class of its settings: ``FgceSettings`` in ``settings`` of the folder ``fgce``."""
        words = "".join(word.capitalize() for word in self.name.split("_"))
        settings: type[MethodSettings] = getattr(self.module("settings"), f"{words}Settings")
        return settings

    def load(self) -> ModuleType:
        """The module with ``detect(problem, settings, rng)`` and ``units(problem)``."""
        return self.module(ALGORITHM)

    @property
    def detecting(self) -> tuple[str, ...]:
        """The whole names of the modules that detection reaches by name."""
        return tuple(map(self.path_of, (DECLARATION, ALGORITHM, *self._problem)))

    @property
    def _problem(self) -> tuple[str, ...]:
        return (PROBLEM,) if find_spec(self.path_of(PROBLEM)) else ()

    def own(self, tables: ProblemTables, maker: str, attribute: str) -> object | None:
        """What it alone needs of a problem, by ``own(given, maker, attribute)`` of ``problem``; None without."""
        return self.module(PROBLEM).own(tables, maker, attribute) if self._problem else None

    def plan(self, spec: AuditSpec) -> Iterator[Form]:
        """The measures that it will make in an audit, with their parameters and ranges, by ``measures(spec)``."""
        forms: Iterator[Form] = self.module("measures").measures(spec)
        return forms

    def lacks(self, spec: AuditSpec) -> str:
        """Why it cannot run on a spec, from ``lacks(spec)`` of ``measures`` if defined; empty where it can.

        A method without one needs a feature.
        """
        own = getattr(self.module("measures"), "lacks", None)
        if own is not None:
            return str(own(spec))
        return "" if spec.features() else NO_FEATURE

    def faults(self, spec: AuditSpec) -> Iterator[SpecError]:
        """Faults of its settings given the rest of the spec, from ``faults(spec)`` of ``measures`` if defined."""
        check = getattr(self.module("measures"), "faults", None)
        return iter(()) if check is None else check(spec)

    def own_stages(self) -> list[OwnStage]:
        """Stages of this method alone, as ``stage`` in each folder of its folder declares them."""
        directory = Path(self.module(DECLARATION).__file__ or "").parent
        names = sorted(file.parent.name for file in directory.glob("*/stage.py"))
        return [self.module(f"{name}.stage").OWN_STAGE for name in names]
