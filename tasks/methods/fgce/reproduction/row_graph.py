"""Expands the feasibility graph to rows as in the authors' code, where equal rows are linked both ways.

Eight million edges stay one sparse matrix of about 40 MB; pairs are only written out block by block, for the digest.

Scope: counts, components and the digest of that graph.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from tasks.numerics.arrays import Ints
from tasks.proof.lines import ALL, Cell, Value

_BLOCK = 500_000
"""Edges written out at a time."""


def cells(nodes: pa.Table, edges: pa.Table, group: Ints, groups: Sequence[str]) -> Mapping[Cell, Value]:
    """Returns counts of all rows and of each group, and the digest of all edges; ``group`` is ``(n,)``, an index."""
    graph = _over_rows(nodes["node"].to_numpy(), edges)
    parts = {name: graph[group == number][:, group == number] for number, name in enumerate(groups)}
    found: dict[Cell, Value] = {Cell("edge_digest", ALL): digest(graph)}
    for name, part in {ALL: graph, **parts}.items():
        found |= {Cell(quantity, name): value for quantity, value in _counts(part)}
    return found


def _over_rows(node: Ints, edges: pa.Table) -> csr_array:
    """``(n, n)`` with an entry per edge, destinations ascending; without loops."""
    rows, size = len(node), int(node.max()) + 1
    ends = (edges["source"].to_numpy(), edges["destination"].to_numpy())
    of_nodes = csr_array((np.ones(edges.num_rows, np.int8), ends), (size, size)) + eye_array(size, dtype=np.int8)
    member = csr_array((np.ones(rows, np.int8), (np.arange(rows), node)), (rows, size))
    graph = csr_array(member @ of_nodes @ member.T)
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def _counts(graph: csr_array) -> Iterator[tuple[str, float]]:
    rows, edges = graph.shape[0], graph.nnz
    yield "nodes", float(rows)
    yield "edges", float(edges)
    yield "density", 100 * edges / max(rows * (rows - 1), 1)
    for quantity in ("weak", "strong"):
        count = connected_components(graph, directed=True, connection=quantity, return_labels=False)
        yield f"{quantity}_components", float(count)


def digest(graph: csr_array) -> str:
    """Returns the sha256 of the int32 pairs (source, destination), sorted."""
    content = hashlib.sha256()
    for first in range(0, graph.nnz, _BLOCK):
        place = np.arange(first, min(first + _BLOCK, graph.nnz))
        source = np.searchsorted(graph.indptr, place, side="right") - 1
        pairs = np.column_stack([source, graph.indices[place]]).astype("<i4")
        content.update(np.ascontiguousarray(pairs).tobytes())
    return content.hexdigest()
