"""GCFN on twins of HMDA."""

from tasks.proof.planted import Expected

TWIN = Expected(
    "{networks: 3, epochs: 60, batch: 128}",
    (
        "direct",
        "mediated",
    ),
)
