"""Mitigations that an audit can compare: what each is given of a fold, and what it gives back.

A mitigation learns from training rows of two groups and decides on rows held out. Which there are: the methods that
offer some (``Method.mitigations``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tasks.numerics.arrays import Bools, Floats


@dataclass(frozen=True)
class MitigationFold:
    """``r`` training rows and ``t`` test rows with ``d`` inputs, on the scale of the training rows."""

    inputs: Floats
    """``(r, d)``."""
    label: Bools
    """``(r,)`` outcomes, true where favourable."""
    protected: Bools
    """``(r,)`` who is in the group; the others are in the reference group."""
    test_inputs: Floats
    """``(t, d)``."""
    test_protected: Bools
    """``(t,)``."""
    covariate: Bools
    """``(d,)`` inputs that the attribute does not influence, as the spec says (role: covariate)."""
    is_attribute: Bools
    """``(d,)`` inputs that are the attribute itself."""
    financial: Floats
    """``(r, f)`` what makes applicants comparable, in the user's units; no column where the spec names none."""
    financial_names: tuple[str, ...]


@dataclass(frozen=True)
class Decided:
    """Decisions of a mitigation on the test rows."""

    predicted: Bools | None
    """``(t,)``; None where it cannot be trained."""
    scores: Floats | None = None
    """``(t,)`` of any scale, the higher the more favourable; None where there are decisions alone."""
    reason: str = ""
    """Why there are no decisions; empty where there are."""
    expected: Floats | None = None
    """``(t,)`` probability of a favourable decision, of a model that draws some of its decisions; None of others."""
    explained: Callable[[Bools, Floats], Floats] | None = None
    """``(t,)`` CEC of the members among the test rows, NaN of others, from the outcomes ``(t,)`` and the columns
    ``(t, f)`` by which applicants are comparable; None where no single logit decides. It looks at outcomes only after
    the training."""


class Mitigate(Protocol):
    """Trains a mitigation by its name."""

    def __call__(self, name: str, fold: MitigationFold, seed: int) -> Decided:
        """Its decisions; equal for equal seeds, on the CPU."""
        ...
