"""What CST's chapter looks measures up by: variants, complainant groups and the number of neighbours of the headline.

Here belong names and lookups, so that all parts of the chapter say the same thing in the same words. What is shown, and
how it is read, is in the parts.
"""

from collections.abc import Sequence
from functools import cached_property

from tasks.methods.cst.settings import CstSettings
from tasks.reporting.charts.vega import ACCENT, REFERENCE, WARM
from tasks.reporting.comparison import along
from tasks.reporting.lookups import Lookup
from tasks.reporting.material import Measure, Shown, listed
from tasks.reporting.numbers import SPACE, count
from tasks.reporting.section import Swatch

CST, ST, CENTRED, CF = "cst", "st", "cst_with_centres", "cf"

VARIANTS = {
    CST: Swatch("CST", ACCENT),
    ST: Swatch("ST", WARM, "6 3"),
    CENTRED: Swatch("CST with centres", "#009E73", "2 2"),
    CF: Swatch("CF", REFERENCE, "8 3 2 3"),
}
"""The variants in the order of tables: their names, and how their lines are drawn."""

SHARES = {
    "share_significant": Shown("share significant", "rate"),
    "share_detected": Shown("share detected", "rate"),
}
"""What is said of a group, the headline first."""

_FIRST = (CST, ST)


COUNTERPARTS = {
    "nearest": "the real applicant of the reference group with the same outcome who is most like the complainant in "
    "what makes applicants comparable; nobody is imagined, and no cause is assumed",
    "gan": "the complainant with the mediators that GCFN's adversarial networks imagine of it; how far these can be "
    "trusted stands in GCFN's chapter",
    "quantile": "the complainant with the mediators that GCFN's conditional quantiles imagine of it; how far these can "
    "be trusted stands in GCFN's chapter",
}
"""By generator, but for the causal model, who stands for a complainant in the reference group."""


class Situations(Lookup[CstSettings]):
    """The measures of CST for one decision maker and one protected attribute."""

    METHOD, SETTINGS = "cst", CstSettings

    @property
    def crossed(self) -> bool:
        """Whether the attribute crosses several columns, so that a group is compared with everybody else."""
        return any(p.name == self.view.attribute and len(p.columns) > 1 for p in self.material.settings.protected)

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """The variants that the run has, in the order of tables."""
        found = {m.said.get("variant", "") for measure in SHARES for m in self.view.all(measure)}
        return tuple(variant for variant in VARIANTS if variant in found)

    @property
    def main(self) -> str:
        """The variant of the headline: CST, or ST where nobody could be imagined in another group."""
        return next((variant for variant in _FIRST if variant in self.variants), ST)

    @property
    def shown(self) -> tuple[str, ...]:
        """The variants that are drawn beside one another."""
        return tuple(variant for variant in _FIRST if variant in self.variants)

    def get(self, group: str, measure: str, variant: str, k: int | None = None) -> Measure | None:
        """A measure of a variant, at the headline's number of neighbours if no other is asked for.

        What the headline is about has no parameters; its other forms, by variant and number of neighbours, have both.
        """
        if variant == CF:
            return self.view.get(group, measure, {"variant": CF})
        headline = variant == self.main and k in (None, self.settings.k)
        found = self.view.get(group, measure) if headline else None
        return found or self.view.get(group, measure, {"variant": variant, "k": k or self.settings.k})

    def having(self, group: str, measure: str, variants: Sequence[str]) -> Sequence[str]:
        """The variants that say anything of a group, or the main one alone, so that no group is left out."""
        found = [v for v in variants if any(self.get(group, measure, v, k) for k in self.ks)]
        return found or (self.main,)

    def along(self, group: str, measure: str, variant: str, x: str) -> list[Measure]:
        """A measure along ``x``, which is ``k``, or else a setting that is varied at the headline's k."""
        at: dict[str, float | str] = {"variant": variant}
        return along(self.view, group, measure, x, at if x == "k" else {**at, "k": self.settings.k})

    @cached_property
    def sizes(self) -> dict[str, int | None]:
        """Complainants of each group that has any; None where the number is withheld."""
        found = {group: self.get(group, "share_significant", self.main) for group in self.others}
        return {group: None if own.withheld else own.n for group, own in found.items() if own}

    @property
    def counted(self) -> str:
        """How many complainants each group has, and of whom they are too few: every figure says so."""
        said = [f"{group} {'withheld' if n is None else count(n)}" for group, n in self.sizes.items()]
        few = [group for group, n in self.sizes.items() if n is not None and n < self.minimum]
        warned = f" Fewer than {self.minimum}, too few for a share or a distribution: {listed(few)}." if few else ""
        none = [group for group in self.others if group not in self.sizes]
        left = f" Nobody could be tested with k = {self.settings.k}: {listed(none)}." if none else ""
        return (f" Complainants: {', '.join(said)}." if said else "") + warned + left

    @property
    def ks(self) -> tuple[int, ...]:
        """Numbers of neighbours, ascending."""
        return tuple(sorted(self.settings.ks))

    @property
    def level(self) -> str:
        """The level of the tests, in words."""
        return f"{100 * self.settings.alpha:g}{SPACE}%"


def name(variant: str) -> str:
    """A variant as it is called in the chapter."""
    return VARIANTS[variant].text
