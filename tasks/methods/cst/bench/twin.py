"""CST on twins of HMDA."""

from tasks.proof.planted import Expected

TWIN = Expected(
    "{ks: [100], k: 100, taus: [0], null_permutations: 10, null_complainants: 300, sensitivity: false}",
    (
        "direct",
        "mediated",
    ),
)
