"""The causal graph of a user: made of an order, edges, or a graph of another library, and tested against rows."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import ValidationError

from evenhand.errors import InputError
from evenhand.frame_rows import SENSITIVE, rows_of, sensitive_of
from schemas.audit import causal
from schemas.audit.spec import Protected
from schemas.errors import nearest

LEVEL = 0.05
"""Of the tests of implied independences, after Benjamini-Hochberg."""


class CausalGraph:
    """Which column causes which, as a user assumes it.

    Args:
        edges: Pairs of cause and effect; columns by name, sensitive features among them.
        mechanisms: Column -> how it comes about from its causes (`causal_graph.mechanisms` of an audit spec).

    Raises:
        InputError: The edges have a cycle, or a mechanism belongs to no effect.
    """

    def __init__(
        self, edges: Iterable[tuple[str, str]], mechanisms: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        pairs = []
        for edge in edges:
            if isinstance(edge, str) or len(edge) != 2:
                raise InputError(f'edge {edge!r} is no pair; give a cause and an effect, ("income", "loan")')
            pairs.append((str(edge[0]), str(edge[1])))
        try:
            self.graph = causal.CausalGraph.model_validate({"edges": pairs, "mechanisms": dict(mechanisms or {})})
        except ValidationError as error:
            raise InputError("; ".join(e["msg"].removeprefix("Value error, ") for e in error.errors())) from error

    @classmethod
    def from_order(cls, order: Sequence[Sequence[str]]) -> Self:
        """The saturated graph of an order: every column is caused by all columns of earlier tiers.

        Columns of one tier are taken in the order in which they stand; those of the first tier, the sensitive features,
        cause each other in no way. The graph implies no independence between the columns that it names, so that data
        cannot contradict it: it is the weakest assumption that still gives a total effect.

        Args:
            order: Tiers of columns, causes first: `[["race"], ["income"], ["loan", "ratio"]]`.
        """
        if isinstance(order, str) or any(isinstance(tier, str) for tier in order):
            raise InputError(f'order is {order!r}; give a list of tiers, [["race"], ["income", "loan"]]')
        edges: list[tuple[str, str]] = []
        before: list[str] = []
        for number, tier in enumerate(order):
            for name in tier:
                edges += [(cause, name) for cause in before]
                if number:
                    before.append(name)
            if not number:
                before += list(tier)
        return cls(edges)

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """The graph of a `networkx.DiGraph`, or of a model of DoWhy that holds one."""
        import networkx as nx

        for name in ("graph", "_graph"):
            inner = getattr(graph, name, None)
            if not isinstance(graph, nx.Graph) and isinstance(inner, nx.Graph):
                graph = inner
        if not isinstance(graph, nx.Graph) or not graph.is_directed():
            raise InputError(f"a {type(graph).__name__} is no directed graph; give edges, or a networkx.DiGraph")
        return cls(graph.edges())

    @classmethod
    def from_gml(cls, text: str | Path) -> Self:
        """The graph of a file in GML, or of its text."""
        import networkx as nx

        try:
            if isinstance(text, Path) or "[" not in text:
                return cls.from_networkx(nx.read_gml(text))
            return cls.from_networkx(nx.parse_gml(text))
        except (nx.NetworkXError, OSError) as error:
            raise InputError(f"no graph in GML: {error}") from error

    @classmethod
    def of(cls, graph: Any) -> "CausalGraph":
        """A graph of any of these kinds: edges, GML, networkx, DoWhy, or one of this class."""
        if isinstance(graph, CausalGraph):
            return graph
        if isinstance(graph, str | Path):
            return cls.from_gml(graph)
        return cls(graph) if isinstance(graph, list | tuple | set) else cls.from_networkx(graph)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of cause and effect."""
        return self.graph.edges

    @property
    def spec(self) -> dict[str, Any]:
        """The graph as an audit spec has it."""
        return self.graph.model_dump(mode="json")

    def check_nodes(self, columns: Sequence[str], sensitive: Sequence[str], *decision: str) -> None:
        """Hold the nodes against the columns of a frame, the sensitive features and the decision.

        Raises:
            InputError: A node is none of them.
        """
        nodes = [*columns, *sensitive, *decision]
        for name in dict.fromkeys(name for edge in self.edges for name in edge):
            if name in nodes:
                continue
            advice = nearest(name, nodes)
            if SENSITIVE in sensitive:
                advice = f"sensitive_features have no name: is it pandas.Series(..., name={name!r})?"
            raise InputError(f"the graph has a node {name!r}, and X has no such column; {advice}")

    def __repr__(self) -> str:
        return f"CausalGraph({', '.join(f'{cause} -> {effect}' for cause, effect in self.edges)})"

    def test(self, X: Any, sensitive_features: Any, random_state: int = 0) -> pd.DataFrame:  # noqa: N803 as scikit-learn
        """Test every independence that the graph implies, by generalised covariances (Shah and Peters 2020).

        Args:
            X: ``(n, p)`` frame; rows that lack a value are left out.
            sensitive_features: ``(n,)`` groups.
            random_state: Seed of the folds.

        Returns:
            A row for each pair: node, other, given, statistic, p, q (Benjamini-Hochberg), n, rejected (q at most 0.05).

        Raises:
            InputError: A fault of the frame; it names the column.
            SpecError: The graph names a column that the frame lacks.
        """
        from tasks.counterfactuals.generators import World  # loads what fits mechanisms
        from tasks.preprocessing.columns import Grouped

        every = rows_of(X)
        sensitive = sensitive_of(sensitive_features, every)
        self.check_nodes(every.names, list(sensitive))
        complete = every.complete
        rows = every.rows(complete)
        groups, protected = {}, []
        for name, text in sensitive.items():
            names, codes = np.unique(np.array(text.to_pylist(), dtype=str)[complete], return_inverse=True)
            groups[name] = Grouped(codes.astype(np.int32), tuple(names.tolist()), 0)
            protected.append(Protected(name=name, columns=(name,), reference=str(names[0])))
        categories = {column.name: column.categories for column in rows.columns}
        columns = rows.arrays(rows.names, categories)
        checks = World(columns, tuple(protected), groups, self.graph, random_state).checks()
        tested = [check for check in checks if check.name == "independence"]
        return pd.DataFrame(
            {
                "node": [check.node for check in tested],
                "other": [check.other for check in tested],
                "given": [check.conditions for check in tested],
                "statistic": [check.statistic for check in tested],
                "p": [check.p for check in tested],
                "q": [check.q for check in tested],
                "n": [check.n for check in tested],
                "rejected": [check.q <= LEVEL for check in tested],
            }
        )
