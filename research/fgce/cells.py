"""Cells of the tables of the FGCE paper, its figures, printed tables and reference outputs."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pulp
import pyarrow as pa
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from research import figures as research_figures
from research.figures import (
    ALL,
    FOUR_DECIMALS,
    MOST_POINTS,
    REPRODUCED,
    Cell,
    Curve,
    Drawing,
    Figure,
    Value,
    curves,
    tables,
)
from schemas.audit.spec import AuditSpec
from tasks.detection import stage as detect
from tasks.detection.problems import cases as problems
from tasks.feasibility_graph.algorithm import collapse
from tasks.feasibility_graph.rows import rules_of, strata_of
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm import connectivity, optima, recourse
from tasks.methods.fgce.algorithm.costs import Vector
from tasks.methods.fgce.algorithm.covering import Optimum, Part, Pick, between, refusal
from tasks.methods.fgce.algorithm.recourse import Pricing, Searched
from tasks.methods.fgce.algorithm.solver import Solver, solve
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Ints, Longs
from tasks.numerics.problem import Problem
from tasks.pipeline.method import ProblemTables

# --------------------------------------------------------------------------------------------------------------------
# Reads the tables of the FGCE paper, with the precision to which it prints them.


COUNTS = ("nodes", "edges", "strong_components", "weak_components", "coverable", "false_negatives", "candidates", "k0")
"""Quantities without a tolerance, next to saturation points."""

LATER, LATER_COST = "cauc_saturation_to_28", "smallest_cost_to_28"
"""Table V goes on to k = 28, where the other tables and the reference end at 10."""

LARGEST_K = 28

EXACT = (*COUNTS, "dauc_saturation", "cauc_saturation", LATER)

PRINTED_CELLS = 0.0101
"""The paper prints two decimals, rounded in places and cut off in others."""


def figures(published_values: Mapping[str, Any], dataset: str, groups: Sequence[str]) -> Iterator[Figure]:
    """Yields the figures of the tables by group of a data set; ``groups`` are the names of G0 and G1."""
    for table in filter(_of_groups, tables(published_values, dataset)):
        for label, group in zip(("G0", "G1"), groups, strict=True):
            for point, row in zip(table.get("at", [None]), table[label], strict=True):
                at: tuple[Value, ...] = () if point is None else (float(point),)
                by_name = dict(zip(table["quantities"], map(float, row), strict=True))
                if by_name.get("dauc_coverage") == 0 and by_name["dauc_saturation"] == 1:
                    by_name["dauc_saturation"] = float("nan")  # nothing is covered at any k; the paper prints 1
                for quantity, value in by_name.items():
                    tolerance = FOUR_DECIMALS if table["source"] == REPRODUCED else PRINTED_CELLS
                    if quantity in EXACT:
                        tolerance = 0.0
                    yield Figure(table["source"], False, Cell(quantity, group, at), value, tolerance)


def of_systems(published_values: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """Yields the figures of the tables by system or by attribute of a data set, and the requirements on them."""
    system_tables = [table for table in published_values["table"] if not _of_groups(table)]
    yield from research_figures.figures({"table": system_tables}, dataset)


def _of_groups(table: Mapping[str, Any]) -> bool:
    return "G0" in table


# --------------------------------------------------------------------------------------------------------------------
# Reads the reference outputs of FGCE: those of the authors' code, or of a faster derivation checked against it.
#
# The reference writes coverage in percent, 0 for a saturation point where nothing is covered, and cost 0 where k
# candidates cannot cover enough; here these are shares and NaN.
#
# The files have two layouts: one file for each table, or one summary.


LABELS = ("0.0", "1.0")
"""The groups G0 and G1 in the files."""

SUMMARY, COSTS = "summary.json", "cAUC.json"

PRINTED = "printed_programme_by_cbc"
"""The least cost at k0 by the paper's integer programme."""

MOST = 10
"""The ``paper`` profile selects at most so many candidates; the files hold a few costs of more."""

TOLERANCE = {"kauc": 0.01, "dauc": 0.01, "kauc_saturation": 0.01, "acf": 1e-4}
"""Areas and shares are stored to two decimals; the reference's grid for kAUC begins at 0.7 of a d0 cut to two decimals.
Other shares and costs are held to 1e-4, counts and the digest to 0."""

GRAPH = {"nodes": "nodes", "edges": "edges", "scc": "strong_components", "wcc": "weak_components"}
GROUP = {**GRAPH, "density_pct": "density", "FN": "false_negatives", "candidates": "candidates"}

JsonDict = Mapping[str, Any]


@dataclass(frozen=True)
class Golden:
    """The reference outputs of one data set."""

    place: Path
    groups: Sequence[str]
    """Names of G0 and G1."""
    names: tuple[str, ...]
    """Names of the files."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return tuple(self.place / name for name in self.names)

    @property
    def whole(self) -> bool:
        """Whether most is in one summary, and not in a file per table."""
        return SUMMARY in self.names

    def figures(self) -> Iterator[Figure]:
        """Yields the figures of all cells that our code is to fill."""
        graph = self._read(self._name("graph"))
        tables = graph if self.whole else {name: self._read(f"{name}.json") for name in ("dAUC", "kAUC", "k0d0")}
        source = self._name("graph")
        for key, quantity in {**GRAPH, "density_pct": "density", "edges_sha256": "edge_digest"}.items():
            yield self._figure(source, quantity, ALL, (), (graph["graph"] if self.whole else graph)[key])
        for label in LABELS:
            for key, quantity in GROUP.items():
                yield self._figure(source, quantity, label, (), graph["groups"][label][key])
        source = self._name("reachability")
        by_group = graph["groups"] if self.whole else self._read(source)
        for label in LABELS:
            count = by_group[label]["coverable" if self.whole else "n_coverable"]
            yield self._figure(source, "coverable", label, (), count)
        yield from self._areas("dauc", tables["dAUC"])
        yield from self._areas("kauc", tables["kAUC"]["k"])
        kauc, source = tables["kAUC"], self._name("kAUC")
        for k, by_group in kauc["k"].items():
            for label in LABELS:
                for d, share in zip(kauc["x"], by_group[label]["coverage"], strict=True):
                    at = round(d, 6), float(k)
                    yield self._figure(source, "coverage_on_kauc_grid", label, at, share / 100)
        yield from self._by_limit(tables["dAUC"])
        source, smallest = self._name("k0d0"), "d_lb" if self.whole else "d0_lower_bound_unconstrained_k"
        for label in LABELS:
            full = tables["k0d0"][label]
            for key, quantity in (("k0", "k0"), ("d0_code", "d0_at_k0"), (smallest, "d0")):
                yield self._figure(source, quantity, label, (), full[key])
            if not self.whole:  # the programme as printed is for small data only
                yield self._figure(source, PRINTED, label, (), full["d0_code"])
        yield from self._costs()
        yield from self._changes()

    @property
    def grid(self) -> list[float]:
        """Limits d of the reference's kAUC."""
        content = self._read(self._name("kAUC"))
        table = content["kAUC"] if self.whole else content
        return [float(x) for x in table["x"]]

    @property
    def attribution(self) -> tuple[int, float]:
        """The k and d at which the reference gives attribute change frequencies."""
        content = self._read("acf.json")
        return int(content["k"]), float(content["d"])

    def _name(self, table: str) -> str:
        """The file that holds a table."""
        return SUMMARY if self.whole else f"{table}.json"

    def _read(self, name: str) -> JsonDict:
        content: JsonDict = json.loads((self.place / name).read_text(encoding="utf-8"))
        return content

    def _figure(self, source: str, quantity: str, label: str, at: tuple[Value, ...], value: float | str) -> Figure:
        group = dict(zip(LABELS, self.groups, strict=True)).get(label, ALL)
        tolerance = 0.0 if quantity in EXACT else TOLERANCE.get(quantity, FOUR_DECIMALS)
        published_value = value if isinstance(value, str) else float(value)
        return Figure(source, True, Cell(quantity, group, at), published_value, tolerance)

    def _areas(self, quantity: str, areas: JsonDict) -> Iterator[Figure]:
        """Area, saturation point and highest coverage by k or by d."""
        name = self._name("kAUC" if quantity == "kauc" else "dAUC")
        for at, by_group in areas.items():
            for label in LABELS:
                row = by_group[label]
                point = row["sp"] if row["maxcov"] else float("nan")
                yield self._figure(name, quantity, label, (float(at),), row["auc"])
                yield self._figure(name, f"{quantity}_saturation", label, (float(at),), point)
                yield self._figure(name, f"{quantity}_coverage", label, (float(at),), row["maxcov"] / 100)

    def _by_limit(self, dauc: JsonDict) -> Iterator[Figure]:
        """Coverage by k at every limit of dAUC."""
        source = self._name("coverage_kd")
        for label in LABELS:
            percents: list[tuple[str, str | int, float]] = []
            if self.whole:
                for d, by_group in dauc.items():
                    percents += [(d, k, percent) for k, percent in enumerate(by_group[label]["coverage"], start=1)]
            else:
                for key, by_group in self._read("coverage_kd.json")["table"].items():
                    d, _, position = key.partition("|")
                    percents.append((d, position, by_group[label]["coverage"]))
            for d, k, percent in percents:
                yield self._figure(source, "coverage", label, (float(d), float(k)), percent / 100)

    def _costs(self) -> Iterator[Figure]:
        """Least cost by share and k, as far as it was computed, and where it is smallest if that is for every k."""
        if COSTS not in self.names:
            return
        for share, by_k in self._read(COSTS).items():
            for label in LABELS:
                paid: dict[int, float] = {
                    int(k): float(row[label]["d"] if self.whole else row["res"][label]["Total Cost"]) or float("nan")
                    for k, row in by_k.items()
                    if int(k) <= MOST
                }
                for k, cost in paid.items():
                    yield self._figure(COSTS, "least_cost", label, (float(share), float(k)), cost)
                if sorted(paid) == list(range(1, len(paid) + 1)):
                    smallest = min(paid, key=lambda k: (math.isnan(paid[k]), paid[k]))
                    yield self._figure(COSTS, "smallest_cost", label, (float(share),), paid[smallest])
                    yield self._figure(COSTS, "cauc_saturation", label, (float(share),), smallest)

    def _changes(self) -> Iterator[Figure]:
        """Shares of changed attributes; columns of one-hot sets, which the reference counts singly, are left out."""
        content = self._read("acf.json")
        for label in LABELS:
            percent = content[label]["acf_pct_onehot_collapsed"] if self.whole else content["greedy"][label]["acf"]
            for name, value in percent.items():
                if not name.rpartition("_")[2].isdigit():
                    yield self._figure("acf.json", "acf", label, (name,), value / 100)


# --------------------------------------------------------------------------------------------------------------------
# Expands the feasibility graph to rows as in the authors' code, where equal rows are linked both ways.
#
# Eight million edges stay one sparse matrix of about 40 MB; pairs are only written out block by block, for the digest.
#
# Scope: counts, components and the digest of that graph.


_BLOCK = 500_000
"""Edges written out at a time."""


def cells(nodes: pa.Table, edges: pa.Table, group: Ints, groups: Sequence[str]) -> Mapping[Cell, Value]:
    """Returns counts of all rows and of each group, and the digest of all edges; ``group`` is ``(n,)``, an index."""
    node = nodes["node"].to_numpy()
    rows, size = len(node), int(node.max()) + 1
    ends = (edges["source"].to_numpy(), edges["destination"].to_numpy())
    of_nodes = csr_array((np.ones(edges.num_rows, np.int8), ends), (size, size)) + eye_array(size, dtype=np.int8)
    member = csr_array((np.ones(rows, np.int8), (np.arange(rows), node)), (rows, size))
    graph = csr_array(member @ of_nodes @ member.T)
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    parts = {name: graph[group == number][:, group == number] for number, name in enumerate(groups)}
    values: dict[Cell, Value] = {Cell("edge_digest", ALL): digest(graph)}
    for name, part in {ALL: graph, **parts}.items():
        count, edge_count = part.shape[0], part.nnz
        values[Cell("nodes", name)] = float(count)
        values[Cell("edges", name)] = float(edge_count)
        values[Cell("density", name)] = 100 * edge_count / max(count * (count - 1), 1)
        for kind in ("weak", "strong"):
            count_of_kind = connected_components(part, directed=True, connection=kind, return_labels=False)
            values[Cell(f"{kind}_components", name)] = float(count_of_kind)
    return values


def digest(graph: csr_array) -> str:
    """Returns the sha256 of the int32 pairs (source, destination), sorted."""
    content = hashlib.sha256()
    for first in range(0, graph.nnz, _BLOCK):
        place = np.arange(first, min(first + _BLOCK, graph.nnz))
        source = np.searchsorted(graph.indptr, place, side="right") - 1
        pairs = np.column_stack([source, graph.indices[place]]).astype("<i4")
        content.update(np.ascontiguousarray(pairs).tobytes())
    return content.hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# Solves FGCE's coverage-constrained problem as one integer programme, as the paper prints it (section IV).
#
# One variable per feasible pair, so it is for small groups and for checking
# ``tasks.methods.fgce.algorithm.optima``, which gives the same optimum.


def printed_mip(parts: Sequence[Part], k: int, need: int, solver: Solver) -> Optimum:
    """Returns the least largest cost at which at most ``k`` candidates cover at least ``need`` rows.

    Returns:
        In encoded units, to the solver's tolerance; a refusal where the programme is infeasible.

    Raises:
        InfrastructureError: If the solver is not installed.
    """
    problem = pulp.LpProblem("coverage_constrained", pulp.LpMinimize)
    limit = problem.add_variable("d", 0)
    problem += limit
    use, rows = {}, []
    for number, part in enumerate(parts):
        for column in np.flatnonzero(np.isfinite(part.cost).any(axis=0)).tolist():
            use[number, column] = problem.add_variable(f"u{number}_{column}", cat="Binary")
        for factual in range(len(part.cost)):
            served = {
                column: problem.add_variable(f"r{number}_{factual}_{column}", cat="Binary")
                for column in np.flatnonzero(np.isfinite(part.cost[factual])).tolist()
            }
            problem += pulp.lpSum(float(part.cost[factual, column]) * r for column, r in served.items()) <= limit
            problem += pulp.lpSum(served.values()) <= 1
            for column, r in served.items():
                problem += r <= use[number, column]
            rows += [int(part.weight[factual]) * r for r in served.values()]
    problem += pulp.lpSum(use.values()) <= k
    problem += pulp.lpSum(rows) >= need
    solution = solve(problem, solver)
    if solution.status == "infeasible":
        return refusal(f"k = {k} counterfactuals cannot cover {need} of {sum(part.rows for part in parts)} rows")
    picks: list[Pick] = [pick for pick, variable in use.items() if solution.values.get(variable.name, 0) > 0.5]
    if solution.status == "stopped" and not solution.values:
        return Optimum(float("nan"), solution.bound, False, (), f"undecided: {solution.note}; no solution was found")
    return between(solution.values["d"], solution.bound, picks, solution.note)


# --------------------------------------------------------------------------------------------------------------------
# Search for the k window of the printed cAUC (FGCE, Tables V and XI): the paper does not say over which k it is taken.
#
# Every window of k = 1 to 10 is tried, with three divisors: the smallest cost of any group at the share, the smallest
# of any group at any share, and the smallest of the group itself at any share. A cell agrees if it is within 0.02.
#
# Scope: the search. The measure itself: ``tasks.methods.fgce.algorithm.optima``.


CLOSE = 0.02
"""The printed areas have two decimals."""

DIVISORS = ("at the share", "at any share", "of the group")

Key = tuple[str, Value]
"""Group and share."""


@dataclass(frozen=True)
class Window:
    """A window of k and a divisor, with the cells that agree."""

    first: int
    last: int
    divisor: str
    agree: int
    total: float
    """Sum of the distances from the printed areas, infinite where one cannot be had."""

    def __str__(self) -> str:
        return f"k {self.first} to {self.last}, divided by the smallest {self.divisor}: {self.agree}"


def windows_cells(figures: Sequence[Figure], obtained_cells: Mapping[Cell, Value]) -> Iterator[tuple[Cell, Value]]:
    """Yields the window that agrees with most of the printed areas, and with how many of how many."""
    printed = {(f.cell.group, f.cell.at[0]): float(f.value) for f in figures if f.cell.quantity == "cauc"}
    if not printed:
        return
    costs = {
        key: [float(obtained_cells.get(Cell("least_cost", key[0], (key[1], float(k))), np.nan)) for k in range(1, 11)]
        for key in printed
    }
    windows = []
    for first, last in combinations_with_replacement(range(1, 11), 2):
        for divisor in DIVISORS:
            off = np.array([abs(_area(key, costs, first, last, divisor) - area) for key, area in printed.items()])
            total = float(np.where(np.isnan(off), np.inf, off).sum())
            windows.append(Window(first, last, divisor, int((off <= CLOSE).sum()), total))
    best = min(windows, key=lambda window: (-window.agree, window.total))
    yield Cell("areas_agreeing_in_the_best_window", ALL), float(best.agree)
    yield Cell("best_window", ALL), f"{best} of {len(printed)}"


def _area(key: Key, costs: Mapping[Key, Sequence[float]], first: int, last: int, divisor: str) -> float:
    """The mean height of the curve of least costs over the window, in units of the divisor."""
    window = np.array(costs[key][first - 1 : last])
    height = np.trapezoid(window) / (last - first) if last > first else window[0]
    window_costs = {
        "at the share": [c for other, values in costs.items() if other[1] == key[1] for c in values],
        "at any share": [c for values in costs.values() for c in values],
        "of the group": [c for other, values in costs.items() if other[0] == key[0] for c in values],
    }[divisor]
    finite = [cost for cost in window_costs if np.isfinite(cost) and cost > 0]
    return float(height / min(finite)) if finite else float("nan")


# --------------------------------------------------------------------------------------------------------------------
# Converts the tables of an audit by FGCE to cells of the reproduction.
#
# Only the model's decisions are explained, as the profile `paper` has it: the paper knows no others.
#
# Scope: cells that some table holds. Cells that are computed again: ``selections``.


Tables = Mapping[str, pa.Table]
"""The tables of the stages up to detection, by name."""


def groups_of(tables: Tables) -> tuple[Ints, list[str]]:
    """Returns each row's group ``(n,)`` as an index, and the groups' names in the order of G0 and G1."""
    member = tables["memberships"].to_pandas().set_index("row_id")["group"]
    names, codes = np.unique(member.loc[tables["features"]["row_id"].to_pylist()], return_inverse=True)
    return codes.astype(np.int32), [str(name) for name in names]


def obtained_cells(tables: Tables) -> Mapping[Cell, Value]:
    """Returns the measures of whole groups, with shares and areas over the coverable rows as in the paper."""
    values: dict[Cell, Value] = {}
    aggregates = tables["aggregates"].to_pandas()
    for row in aggregates[aggregates["subgroup"] == 0].itertuples():
        values[Cell(row.measure, row.group, _at(row.parameters))] = float(row.value)
        if row.measure == "k0":
            values[Cell("coverable", row.group)] = float(row.n)
    # means over the rows on which a measure is defined
    tallies = tables["tallies"].to_pandas()
    measures = tallies["measure"].isin(["coverage", "kauc", "dauc"])
    tallies = tallies[(tallies["subgroup"] == 0) & measures & tallies["value"].notna()]
    tallies = tallies[tallies["parameters"].str.contains('"denominator": "feasible"')]
    for (measure, group, parameters), rows in tallies.groupby(["measure", "group", "parameters"]):
        n = rows["count"].sum()
        mean = float(rows["value"] @ rows["count"] / n) if n else float("nan")
        values[Cell(measure, group, _at(parameters))] = mean
    values |= dict(_best(values, "coverage", "dauc_coverage", np.fmax))
    return values | dict(_best(values, "least_cost", "smallest_cost", np.fmin))


def constraints(encodings: pa.Table) -> Iterator[tuple[Cell, Value]]:
    """Yields the rule of each attribute: ``free``, ``up``, ``down``, ``immutable`` or ``transitions``."""
    for row in encodings.to_pandas().drop_duplicates("feature").itertuples():
        yield Cell("constraint", row.feature), row.constraint if pd.isna(row.transitions) else "transitions"


def _at(parameters: str) -> tuple[Value, ...]:
    """Values of a measure's parameters by name, but for the denominator."""
    return tuple(float(value) for name, value in sorted(json.loads(parameters).items()) if name != "denominator")


def _best(
    values: Mapping[Cell, Value], quantity: str, name: str, pick: Callable[[float, float], float]
) -> Iterator[tuple[Cell, Value]]:
    """The best value of any k, at each limit d or share c."""
    best: dict[Cell, float] = {}
    for cell, value in values.items():
        if cell.quantity == quantity:
            at = Cell(name, cell.group, cell.at[:1])
            best[at] = float(pick(best.get(at, np.nan), float(value)))
    yield from best.items()


# --------------------------------------------------------------------------------------------------------------------
# Computes cells that no table of an audit holds: coverage at the reference's limits, attributes changed at (k, d).
#
# The reference's grid for kAUC begins at 0.7 of a d0 that is cut off to two decimals, ours at 0.7 of d0 itself.
# Coverage is therefore also computed at the reference's limits, where it must be equal.
#
# Scope: the problem rebuilt from tables. Selection: ``tasks.methods.fgce.algorithm.recourse``.


SMALL = 5_000
"""Pairs of factual and candidate up to which the programme is solved as the paper prints it."""

SLACK = 1e-9
"""The reference's d is at times the very cost that it is to admit."""


def fgce_settings(spec: AuditSpec) -> FgceSettings:
    """Returns the settings of FGCE.

    Raises:
        ValueError: The audit spec does not ask for FGCE.
    """
    fgce = spec.methods.of(FgceSettings)
    if fgce is None:
        raise ValueError("the audit spec does not ask for FGCE")
    return fgce


def selections_cells(problem: Problem, spec: AuditSpec, golden: Golden) -> Mapping[Cell, Value]:
    """Computes coverage by k on the reference's grid for kAUC, changes of attributes, and counts of explained rows."""
    fgce = fgce_settings(spec)
    pricing = Pricing(problem, fgce, np.random.default_rng(spec.seed))
    values: dict[Cell, Value] = {}
    for number, name in enumerate(problem.groups):
        rows = np.flatnonzero(problem.group == number)
        values[Cell("false_negatives", name)] = float(problem.factual[rows].sum())
        values[Cell("candidates", name)] = float(problem.candidate[rows].sum())
        searched = recourse.search(problem, rows, pricing.costs)
        # the share of the coverable rows that k selected candidates cover, at every limit; and the highest of any limit
        explained = recourse.explain(searched, np.array(golden.grid), fgce.k)
        turn, n = explained.turn[: len(golden.grid)], int(explained.feasible.sum())
        for k in range(1, fgce.k + 1):
            shares = ((turn >= 0) & (turn < k)).sum(axis=1) / n
            values[Cell("kauc_coverage", name, (float(k),))] = float(shares.max())
            for d, share in zip(golden.grid, shares.tolist(), strict=True):
                values[Cell("coverage_on_kauc_grid", name, (round(d, 6), float(k)))] = share
        tables = optima.tables_of(searched, fgce.model_copy(update={"exact_pairs": SMALL}))
        if tables:  # the least cost at k0 by the paper's integer programme, of small groups only
            parts, solver = optima.parts_of(tables, searched.weight), optima.solver_of(fgce)
            k0 = int(optima.full(parts, solver).k0.value)
            need = sum(part.rows for part in parts)
            values[Cell(PRINTED, name)] = printed_mip(parts, k0, need, solver).value
        values |= dict(_later(searched, fgce, name))
        values |= {Cell("acf", name, (a,)): v for a, v in _changed(searched, *golden.attribution, problem)}
    return values


def _later(searched: Searched, fgce: FgceSettings, group: str) -> Iterator[tuple[Cell, Value]]:
    """Yields the least cost of any k up to 28, and the k from which on it falls no more, at each share."""
    settings = fgce.model_copy(update={"k": LARGEST_K})
    tables = optima.tables_of(searched, settings)
    if tables is None:
        return
    least = optima.least(optima.parts_of(tables, searched.weight), settings)
    for share in fgce.shares:
        costs = np.array([least[k, share].value for k in range(1, LARGEST_K + 1)])
        if np.isfinite(costs).any():
            yield Cell(LATER_COST, group, (share,)), float(np.nanmin(costs))
            yield Cell(LATER, group, (share,)), float(optima.cheapest_k(costs[None])[0])


def problem_of(tables: Tables, spec: AuditSpec) -> Problem:
    """Returns the model's decisions by the paper's one protected attribute, as detection sees them."""
    (case,) = problems(ProblemTables.of(tables), detect.detect_settings(spec, "fgce"))
    return case.problem


def _changed(searched: Searched, k: int, d: float, problem: Problem) -> Iterator[tuple[str, float]]:
    """Share of the covered rows with another attribute value than their nearest of the k selected within d."""
    explained = recourse.explain(searched, np.array([d + SLACK]), k)
    picks = explained.selected.picks[0]
    picks = picks[picks >= 0]
    paid = np.column_stack([explained.pays(np.array([pick])) for pick in picks])
    covered = np.flatnonzero(explained.turn[0] >= 0)
    row, node = covered, picks[np.nanargmin(paid[covered], axis=1)]
    differs = searched.points[searched.at[row]] != searched.points[node]
    for number, name in enumerate(problem.features):
        columns = problem.feature_of_column == number
        yield name, float(differs[:, columns].any(axis=1).mean())


# --------------------------------------------------------------------------------------------------------------------
# Draws the figures of the FGCE paper that have no numbers: connectivity, components, and changed attributes.
#
# Scope: points of the curves, and the counts behind them. FACE's curves: ``baselines.face``.


MULTIPLES: Final = (0.25, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Limits on a step to draw, as multiples of the paper's."""

FACTUALS, CANDIDATES, ACTIVE = "factuals_in_component", "candidates_in_component", "active_components"

WORDS: Final = {
    connectivity.COMPONENTS: "weakly connected components",
    connectivity.STRONG_COMPONENTS: "strongly connected components",
    connectivity.SINGLETONS: "singletons",
    connectivity.DENSITY: "density in percent",
}


@dataclass(frozen=True)
class Shown:
    """What the figures of one data set show."""

    cells: dict[Cell, Value]
    drawings: tuple[Drawing, ...]


def connected(problem: Problem, tables: Mapping[str, pa.Table], settings: GraphSettings, epsilon: float) -> Shown:
    """Components, singletons and density of each group by the limit on a step (Figures 1 and 5)."""
    rules, codes = rules_of(problem.encoded, tables["encodings"])
    strata = strata_of(tables["features"]["row_id"].to_pylist(), tables["memberships"])
    distinct = collapse(problem.encoded, codes, strata, rules)
    epsilons = [multiple * epsilon for multiple in MULTIPLES]
    graphs = connectivity.connections(connectivity.nested(distinct, rules, epsilons, settings))
    cells: dict[Cell, Value] = {}
    for aggregate in connectivity.aggregates(graphs, distinct, problem.group, len(problem.groups), epsilons):
        percent = 100.0 if aggregate.measure == connectivity.DENSITY else 1.0
        at = (round(float(aggregate.parameters["epsilon"]), 6),)
        cells[Cell(f"{aggregate.measure}_by_epsilon", problem.groups[aggregate.group], at)] = percent * aggregate.value
    drawings = []
    for measure, words in WORDS.items():
        of_measure = {cell: value for cell, value in cells.items() if cell.quantity == f"{measure}_by_epsilon"}
        x = sorted({float(cell.at[0]) for cell in of_measure})
        lines = {
            group: [float(of_measure[Cell(f"{measure}_by_epsilon", group, (radius,))]) for radius in x]
            for group in problem.groups
        }
        name = f"{measure.replace('_', '-')}-by-epsilon"
        title = f"{words.capitalize()} of the feasibility graph"
        drawings.append(Drawing(name, "Figures 1 and 5", title, "epsilon, in encoded units", words, curves(x, lines)))
    alone = f"{connectivity.SINGLETONS}_by_epsilon"
    last = round(epsilons[-1], 6)
    cells[Cell(connectivity.SINGLETONS, ALL)] = sum(
        float(cells[Cell(alone, group, (last,))]) for group in problem.groups
    )
    return Shown(cells, tuple(drawings))


def components(problem: Problem) -> Shown:
    """Factual and candidate rows in each component that has both, most factuals first (Figures 2 and 6)."""
    cells: dict[Cell, Value] = {}
    series: list[Curve] = []
    for number, name in enumerate(problem.groups):
        counts = _component_counts(problem, np.flatnonzero(problem.group == number))
        cells[Cell(ACTIVE, name)] = float(len(counts))
        for quantity, values in zip((FACTUALS, CANDIDATES), counts.T, strict=True):
            places = range(1, len(values) + 1)
            cells |= {Cell(quantity, name, (float(at),)): float(v) for at, v in zip(places, values, strict=True)}
            if len(values):
                label = f"{name}, {'factuals' if quantity == FACTUALS else 'candidates'}"
                series += curves(places[:MOST_POINTS], {label: values[:MOST_POINTS].tolist()})
    title = "Factuals and candidates in each weakly connected component that has both"
    x = "component, most factuals first"
    return Shown(cells, (Drawing("rows-by-component", "Figures 2 and 6", title, x, "rows", tuple(series)),))


def _component_counts(problem: Problem, rows: Longs) -> Longs:
    """``(components, 2)`` factual and candidate rows of a group's active components."""
    searched = recourse.search(problem, rows, lambda _, points, __: Vector(points))
    component = searched.reach.component
    nodes = np.unique(problem.node[rows])
    of_row = component[np.searchsorted(nodes, problem.node[rows])]
    size = int(component.max(initial=-1)) + 1
    counts = [np.bincount(of_row[chosen[rows]], minlength=size) for chosen in (problem.factual, problem.candidate)]
    table = np.column_stack(counts)
    table = table[(table > 0).all(axis=1)]
    return table[np.lexsort((-table[:, 1], -table[:, 0]))].astype(np.int64)


def changed(cells: Mapping[Cell, Value], problem: Problem) -> Shown:
    """Share of the covered rows in which an attribute changes, a place for each attribute (Figures 3 and 7).

    As in the paper, attributes are left out that change for at most half of the rows of every group.
    """
    shares = {
        name: [float(cells[Cell("acf", group, (name,))]) for group in problem.groups] for name in problem.features
    }
    frequent = {name: values for name, values in shares.items() if max(values) > 0.5}
    if not frequent:
        return Shown({}, ())
    words = ", ".join(f"{at} {name}" for at, name in enumerate(frequent, start=1))
    lines = {group: [values[number] for values in frequent.values()] for number, group in enumerate(problem.groups)}
    title = "Attribute change frequency"
    places = curves(range(1, len(frequent) + 1), lines)
    return Shown({}, (Drawing("attribute-change-frequency", "Figures 3 and 7", title, words, "share of rows", places),))
