"""CEC on twins of HMDA."""

from tasks.proof.planted import Expected

TWIN = Expected(
    "{theta_steps: 0}",
    ("direct",),
    {"mediated": "the model has the same reasons for everybody; it is means that differ"},
)
