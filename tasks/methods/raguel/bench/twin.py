"""RAGUEL on twins of HMDA."""

from tasks.proof.planted import Expected

TWIN = Expected(
    "{block_counts: [10], tolerances: [0.3333], probes: 20}",
    (
        "direct",
        "mediated",
    ),
)
