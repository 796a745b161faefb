"""What `sampling: null` costs, said before an audit: how much longer stages take than with the default sample."""

from schemas.audit.partition import Sampling
from schemas.audit.spec import AuditSpec

_GRAPH = {"connect": 1.1, "ablate": 1.5, "detect fgce": 1.0}
_ASKED = {"detect cst": 1.0, "detect cec": 1.0, "detect gcfn": 1.0}
"""Exponents by which CPU time grows with the rows: of the graph as measured from 20,000 to 418,000 rows (scale.md 9);
of questions in proportion to the rows, which bounds them from above."""


def cost_of_everybody(spec: AuditSpec, rows: int | None) -> str:
    """A sentence; empty where the spec samples, follows a paper, or has no method that would ask a sample.

    Args:
        spec: of the audit.
        rows: of its source, where they are known before it is read.
    """
    stages = _stages(spec)
    if spec.sampling is not None or spec.profile == "paper" or not stages:
        return ""
    sampling = Sampling()
    if rows is None:
        return (
            f"sampling: null asks everybody: beyond {sampling.queries:,} complainants, or {sampling.graph_rows:,} rows "
            f"of a graph, {_listed(stages)} take longer than with the default sample, and more memory"
        )
    times = {name: _times(name, rows, sampling) for name in stages}
    longer = [f"{name} {ratio:.1f} times" for name, ratio in times.items() if ratio >= 1.1]
    if not longer:
        return ""
    return (
        f"sampling: null asks everybody: by the growth with rows, {rows:,} rows take at most about so much longer than "
        f"with the default sample: {', '.join(longer)}"
    )


def _stages(spec: AuditSpec) -> list[str]:
    running = spec.methods.running()
    of_graph = list(_GRAPH) if "fgce" in running else []
    return [*of_graph, *(name for name in _ASKED if name.removeprefix("detect ") in running)]


def _times(name: str, rows: int, sampling: Sampling) -> float:
    most, exponent = (sampling.graph_rows, _GRAPH[name]) if name in _GRAPH else (sampling.queries, _ASKED[name])
    return float(max(1.0, rows / most) ** exponent)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
