"""Takes a planted lender through the whole product: a file and a spec in, the table ``verdicts`` out.

Held against ``audit``, which starts from arrays: both must say the same of every group.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from flows.bench.work.planted.audit import LOGGED, columns, graph_of
from schemas.audit.spec import AuditSpec
from tasks.ingest.synthetic.algorithm.planted_lenders import PURPOSES, Applied
from tasks.pipeline.specs import read_spec
from tasks.plan import plan
from tasks.proof.plain import call_plainly

BLOCKS = {"terms": ("amount", "ltv", "purpose"), "finances": ("income", "dti", "years"), "history": ("score",)}
"""Of the ladder; the columns of the last rung are all of them."""
FILE = "planted.csv"


def verdict_rows(applied: Applied, place: Path, seed: int = 0) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The rows of the table ``verdicts`` by measure and group, those of whole theories by theory and an empty group.

    Args:
        applied: Applicants and decisions; they are written to a file.
        place: The folder of the file.
        seed: Of the audit.
    """
    frame(applied).to_csv(place / FILE, index=False)
    steps = [step for step in plan(spec_of(applied, place, seed)).steps if step.name != "report"]
    (table,) = call_plainly(steps)["verdicts"]
    decisive = (row for row in table.to_pylist() if row["role"] != "watch")
    return {(row["measure"] or row["theory"], row["group"]): row for row in decisive}


def frame(applied: Applied) -> pd.DataFrame:
    """The file: every number to its last digit, so that nothing differs from the arrays."""
    found = columns(applied)
    out = pd.DataFrame(dict(zip(found.names, found.values.T, strict=True)))
    out["purpose"] = [PURPOSES[code] for code in applied.purpose]
    out["race"] = [applied.scenario.groups[code] for code in applied.group]
    out["decision"] = ["denied" if each else "approved" for each in applied.denied]
    return out


def spec_of(applied: Applied, place: Path, seed: int) -> AuditSpec:
    """The audit spec: the ladder and CST with what their states rest on, and nothing else."""
    groups, names = applied.scenario.groups, columns(applied).names
    graph = graph_of(applied)
    blocks = {block: [name for name in own if name in names] for block, own in BLOCKS.items()}
    said = {
        "name": "planted",
        "title": "A planted lender",
        "year": 2026,
        "source": {"kind": "csv", "path": str(place / FILE)},
        "decision": {"column": "decision", "favourable": ["approved"], "unfavourable": ["denied"]},
        "protected": [
            {"name": "race", "columns": ["race"], "groups": {g: [g] for g in groups}, "reference": groups[0]}
        ],
        "columns": {name: _column(name) for name in names},
        "causal_graph": {"edges": [list(edge) for edge in graph.edges]},
        "methods": {
            "adjusted": {"blocks": {block: own for block, own in blocks.items() if own}, "splits": 1, "folds": 2},
            "cst": {"ks": [30], "k": 30, "null_permutations": 0, "null_draws": 0, "sensitivity": False},
            "fgce": None,
        },
        "verdicts": {"columns_complete": not applied.scenario.without},
        "explain": {"decision_makers": ["lender"]},
        "disclosure": {"profile": "public"},
        "seed": seed,
    }
    return read_spec(yaml.safe_dump(said, sort_keys=False), "planted.yaml", {}).spec


def _column(name: str) -> dict[str, Any]:
    if name == "purpose":
        return {"type": "nominal"}
    return {"type": "continuous", "scale": "log"} if name == LOGGED else {"type": "continuous"}
