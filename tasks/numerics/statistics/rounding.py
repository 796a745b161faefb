"""How a limit is said, so that what is printed is what was used."""


def as_said(limit: float) -> float:
    """A limit as it stands in the parameters of a measure: to ten digits."""
    return float(f"{limit:.10g}")
