"""Reads the reference outputs of FGCE: those of the authors' code, or of a faster derivation checked against it.

The reference writes coverage in percent, 0 for a saturation point where nothing is covered, and cost 0 where k
candidates cannot cover enough; here these are shares and NaN.

The files have two layouts: one file for each table, or one summary.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.methods.fgce.reproduction.printed import COUNTS
from tasks.proof.lines import ALL, FOUR_DECIMALS, Cell, Figure, Value

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
        yield from self._graph(self._name("graph"), graph)
        yield from self._coverable(graph)
        yield from self._areas("dauc", tables["dAUC"])
        yield from self._areas("kauc", tables["kAUC"]["k"])
        yield from self._curves(tables["kAUC"])
        yield from self._by_limit(tables["dAUC"])
        yield from self._full(tables["k0d0"])
        yield from self._costs()
        yield from self._changes()

    @property
    def grid(self) -> list[float]:
        """Limits d of the reference's kAUC."""
        said = self._read(self._name("kAUC"))
        table = said["kAUC"] if self.whole else said
        return [float(x) for x in table["x"]]

    @property
    def attribution(self) -> tuple[int, float]:
        """The k and d at which the reference tells how often attributes change."""
        said = self._read("acf.json")
        return int(said["k"]), float(said["d"])

    def _name(self, table: str) -> str:
        """The file that holds a table."""
        return SUMMARY if self.whole else f"{table}.json"

    def _read(self, name: str) -> JsonDict:
        said: JsonDict = json.loads((self.place / name).read_text(encoding="utf-8"))
        return said

    def _figure(self, source: str, quantity: str, label: str, at: tuple[Value, ...], value: float | str) -> Figure:
        group = dict(zip(LABELS, self.groups, strict=True)).get(label, ALL)
        exact = quantity in (*COUNTS, "dauc_saturation", "cauc_saturation")
        tolerance = 0.0 if exact else TOLERANCE.get(quantity, FOUR_DECIMALS)
        said = value if isinstance(value, str) else float(value)
        return Figure(source, True, Cell(quantity, group, at), said, tolerance)

    def _graph(self, source: str, said: JsonDict) -> Iterator[Figure]:
        whole = said["graph"] if self.whole else said
        for key, quantity in {**GRAPH, "density_pct": "density", "edges_sha256": "edge_digest"}.items():
            yield self._figure(source, quantity, ALL, (), whole[key])
        for label in LABELS:
            for key, quantity in GROUP.items():
                yield self._figure(source, quantity, label, (), said["groups"][label][key])

    def _coverable(self, graph: JsonDict) -> Iterator[Figure]:
        source = self._name("reachability")
        said = graph["groups"] if self.whole else self._read(source)
        for label in LABELS:
            count = said[label]["coverable" if self.whole else "n_coverable"]
            yield self._figure(source, "coverable", label, (), count)

    def _areas(self, quantity: str, said: JsonDict) -> Iterator[Figure]:
        """Area, saturation point and highest coverage by k or by d."""
        name = self._name("kAUC" if quantity == "kauc" else "dAUC")
        for at, by_group in said.items():
            for label in LABELS:
                row = by_group[label]
                point = row["sp"] if row["maxcov"] else float("nan")
                yield self._figure(name, quantity, label, (float(at),), row["auc"])
                yield self._figure(name, f"{quantity}_saturation", label, (float(at),), point)
                yield self._figure(name, f"{quantity}_coverage", label, (float(at),), row["maxcov"] / 100)

    def _curves(self, said: JsonDict) -> Iterator[Figure]:
        """Coverage by k at every limit of kAUC."""
        for k, by_group in said["k"].items():
            for label in LABELS:
                for d, share in zip(said["x"], by_group[label]["coverage"], strict=True):
                    yield self._figure(
                        self._name("kAUC"), "coverage_on_kauc_grid", label, (round(d, 6), float(k)), share / 100
                    )

    def _by_limit(self, dauc: JsonDict) -> Iterator[Figure]:
        """Coverage by k at every limit of dAUC."""
        for label in LABELS:
            for d, k, percent in self._percents(dauc, label):
                source = self._name("coverage_kd")
                yield self._figure(source, "coverage", label, (float(d), float(k)), percent / 100)

    def _percents(self, dauc: JsonDict, label: str) -> Iterator[tuple[str, str | int, float]]:
        """Limit d, k and coverage of one group."""
        if self.whole:
            for d, by_group in dauc.items():
                yield from ((d, k, percent) for k, percent in enumerate(by_group[label]["coverage"], start=1))
        else:
            for key, by_group in self._read("coverage_kd.json")["table"].items():
                d, _, k = key.partition("|")
                yield d, k, by_group[label]["coverage"]

    def _full(self, said: JsonDict) -> Iterator[Figure]:
        smallest = "d_lb" if self.whole else "d0_lower_bound_unconstrained_k"
        for label in LABELS:
            for key, quantity in (("k0", "k0"), ("d0_code", "d0_at_k0"), (smallest, "d0")):
                yield self._figure(self._name("k0d0"), quantity, label, (), said[label][key])
            if not self.whole:  # the programme as printed is for small data only
                yield self._figure(self._name("k0d0"), PRINTED, label, (), said[label]["d0_code"])

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
        said = self._read("acf.json")
        for label in LABELS:
            percent = said[label]["acf_pct_onehot_collapsed"] if self.whole else said["greedy"][label]["acf"]
            for name, value in percent.items():
                if not name.rpartition("_")[2].isdigit():
                    yield self._figure("acf.json", "acf", label, (name,), value / 100)
