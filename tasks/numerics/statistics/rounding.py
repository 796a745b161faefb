"""Rounding of limits on cost, so that the printed limit equals the one in use."""


def as_said(limit: float) -> float:
    """A limit as it stands in the parameters of a measure: to ten digits."""
    return float(f"{limit:.10g}")
