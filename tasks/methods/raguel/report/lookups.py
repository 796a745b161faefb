"""What RAGUEL's chapter looks things up by: orders of the list, groups beside others, and where costs come from.

A measure is of one order: the initial one has no parameter ``order``. Comparisons set a group beside the reference
group; the reference group's own row is of all groups together. Here belong names and lookups.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from schemas.terms import DecisionMaker
from tasks.methods.raguel.settings import RaguelSettings
from tasks.reporting.charts.vega import ACCENT, QUIET, REFERENCE, WARM
from tasks.reporting.comparison import notes
from tasks.reporting.lookups import Lookup
from tasks.reporting.material import Material, Measure
from tasks.reporting.section import Cell, Swatch

METHOD = "raguel"
HEADLINE = "recourse_cost"
UNIT = "weighted standard deviations"
INITIAL = ""
RERANKED: Mapping[str, Swatch] = {
    "list": Swatch("list re-ranked (Algorithm 1)", ACCENT, "6 3", "triangle"),
    "blocks": Swatch("blocks re-ranked (Algorithm 2)", WARM, "2 2", "square"),
    "any": Swatch("blocks re-ranked at any depth", "#009E73", "8 3 2 3", "diamond"),
}
"""The orders that RAGUEL makes, and how they are drawn."""
KINDS: Mapping[str, Swatch] = {INITIAL: Swatch("initial order", REFERENCE, shape="circle"), **RERANKED}
"""The same, with the order that they begin from."""
BASELINES: Mapping[str, Swatch] = {
    "fa_ir": Swatch("FA*IR", QUIET, shape="cross"),
    "demographic_parity": Swatch("demographic parity", QUIET, shape="triangle-down"),
    "equalised_odds": Swatch("equalised odds", QUIET, shape="triangle-down"),
}
"""What others would do with the same applicants."""
ORDERS: Mapping[str, Swatch] = {**KINDS, **BASELINES}
NOTHING = "Nothing can be said, and that is no pass."
_LINEAR = ("logistic_regression", "rule")


class Ranked(Lookup[RaguelSettings]):
    """The measures of RAGUEL for one decision maker and one protected attribute."""

    METHOD, SETTINGS = METHOD, RaguelSettings

    @cached_property
    def orders(self) -> tuple[str, ...]:
        """The orders that were made, the initial one first and the baselines last."""
        made = {str(m.said.get("order", INITIAL)) for m in self.view.rows}
        return tuple(order for order in ORDERS if order == INITIAL or order in made)

    @property
    def reranked(self) -> tuple[str, ...]:
        """The orders that RAGUEL made."""
        return tuple(order for order in self.orders if order in RERANKED)

    @property
    def drawn(self) -> dict[str, Swatch]:
        """The initial order and those that RAGUEL made, and how they are drawn."""
        return {order: KINDS[order] for order in self.orders if order in KINDS}

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """Whose rows compare groups: with two groups, all of them together are the one beside the other."""
        return (*self.others, *(self.view.reference,) * (len(self.others) > 1))

    def get(self, group: str, measure: str, order: str = INITIAL, **parameters: float | str) -> Measure | None:
        """A measure of a group in one order."""
        return self.view.get(group, measure, {**({"order": order} if order else {}), **parameters})

    def beside(self, group: str) -> str:
        """What a comparison is between."""
        reference = self.view.reference
        return "all groups together" if group == reference else f"{group} beside {reference}"

    def named(self, group: str) -> Cell:
        """A group as the first cell of a row."""
        return Cell(self.view.named(group))


def boundary(material: Material, maker: str) -> str:
    """What the cost of an applicant leads to, in a sentence."""
    nearest = (
        "the nearest applicant on whom {by} decided favourably stands in for it. Such a cost depends on who applied, "
        "and is no distance to any boundary"
    )
    if maker == DecisionMaker.LENDER:
        return f"Nobody knows where the lender draws the line: {nearest.format(by='it')}."
    kind = material.settings.model.kind
    found = _found(material.asked(RaguelSettings))
    linear = f"The boundary is the {material.model}'s own, which is linear, and the nearest permitted point is {found}."
    asked = "; what that applicant has is favoured by the very model, together with what the applicant cannot change"
    if kind in _LINEAR:
        return linear
    other = f"{nearest.format(by='it')}{asked}."
    if kind == "file":
        return (
            f"Where the given model is linear its own boundary is taken, and the nearest point is {found}. Else {other}"
        )
    return f"The model has no boundary that could be written down: {other}"


def _found(settings: RaguelSettings) -> str:
    """How the nearest permitted point of a linear boundary is found."""
    steps = ["in whole steps, where the audit spec gives any"] * settings.steps
    if settings.most is not None:
        steps.append(f"among changes of at most {settings.most} columns")
    return f"searched {' and '.join(steps)}" if steps else "worked out in closed form, within bounds and directions"


def too_few(found: Measure, minimum: int) -> bool:
    """Whether fewer applicants stand behind a measure than a reading needs."""
    return found.n is not None and found.n < minimum


def is_lower(after: Measure | None, before: Measure | None) -> bool:
    """Whether a value is known to be lower than it was before."""
    if after is None or before is None or after.value is None or before.value is None:
        return False
    return after.value < before.value


def qualified(found: Iterable[Measure | None]) -> str:
    """What qualifies the values of a table, and why others are undefined, each thing said once."""
    known = list(found)
    said = dict.fromkeys(m.bound for m in known if m and m.value is None and m.bound and not m.withheld)
    why = f"Undefined: {'; '.join(said)}." if said else ""
    return "".join(f" {words}" for words in (notes(known), why) if words)
