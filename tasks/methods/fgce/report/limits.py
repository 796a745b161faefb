"""What FGCE cannot show, in sentences; each stands there only with the measures that it qualifies."""

from collections.abc import Iterator

from tasks.methods.fgce.settings import FgceSettings
from tasks.reporting.material import Material


def limits(material: Material) -> Iterator[str]:
    """What a reader of recourse has to know first."""
    mine = [m for m in material.measures if m.method == "fgce"]
    found = {m.measure for m in mine}
    asked = material.settings.methods.of(FgceSettings) or FgceSettings()
    yield (
        "Group size confounds every comparison of recourse: a small group has fewer examples to follow, whoever "
        "decides. Only comparisons with the size-matched reference take that into account."
    )
    yield (
        "A feasible path is a chain of applications that occurred. It is no advice to an applicant and no promise that "
        f"the lender would decide that way; its cost is given in {asked.cost_unit}, not in money or time."
    )
    if any(m.bound and m.value is not None for m in mine):
        yield (
            "Some optima were not solved, or not to the end: numbers with a dagger are bounds, or made of bounds. The "
            "optimum may be better, and two groups' bounds may differ where their optima do not."
        )
    if "d0" in found:
        yield (
            "k0 and d0 are decided by the few hardest to serve. Their intervals come from drawing the same people "
            "again, which can leave those few out and cannot add others: they fall more easily than they rise. d0 lets "
            "everyone have a candidate of their own, d0 at k0 only as few as will do: the two answer two questions, "
            "and papers call either of them d0."
        )
    if "acf" in found:
        yield (
            "Which attributes change depends on the candidates that were selected; another selection of the same cost "
            "may change others. A change that is frequent is not shown to matter to the decision."
        )
    if "infeasible_share_without" in found:
        yield (
            "Lifting a rule shows what depends on it inside the graph. It does not show that the rule causes a "
            "difference between groups, nor that it could be dropped."
        )
