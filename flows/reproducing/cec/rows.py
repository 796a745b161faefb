"""Rows to train on and to explain, as arrays alone: what is done with them needs nothing of an audit.

Here belongs their shape. Where rows come from is in ``lending``; what is trained on them in ``trained``.
"""

from dataclasses import dataclass

from tasks.algorithms.detector import Floats, Ints
from tasks.algorithms.training.folds import Population


@dataclass(frozen=True)
class Lending:
    """``n`` rows with ``d`` inputs."""

    population: Population
    feature_of_input: Ints
    """``(d,)`` index into ``features``."""
    features: tuple[str, ...]
    financial: Floats
    """``(n, f)`` what applicants are comparable by, in the user's units."""
    financial_names: tuple[str, ...]
