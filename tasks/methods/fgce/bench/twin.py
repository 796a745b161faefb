"""FGCE on twins of HMDA."""

from tasks.proof.planted import Expected

TWIN = Expected(
    "{ablations: false, size_matched_draws: 20, resolves: 0}",
    ("direct",),
    {"mediated": "whoever is denied for lower means is as far from approval as others who are denied"},
)
