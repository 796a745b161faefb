"""CST's section: what is assumed, what speaks against it, and whose refusals are not those of comparable applicants.

Here belongs the order of the chapter. Assumptions come before results, since these hold under them only; the headlines
are the effects, and the shares of complainants, which depend on k, stand below them. Each part is a module of its own.
"""

from collections.abc import Iterator

from tasks.methods.cst.report import (
    causes,
    counterfactuals,
    differences,
    effects,
    reliability,
    sensitivity,
    several_attributes,
    significance,
)
from tasks.methods.cst.report import limits as situation_limits
from tasks.methods.cst.report.lookups import CF, CST, Situations
from tasks.methods.cst.settings import CstSettings
from tasks.reporting.chapters.builder import by_maker, measures
from tasks.reporting.material import Material
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "Would comparable applicants have been decided on alike, had they belonged to the reference group?"
_PARTS = (effects, significance, differences, sensitivity, several_attributes, reliability)
_BELOW = {
    "Differences: how far apart the two groups are": (differences,),
    "Settings: what depends on k and tau": (sensitivity,),
    "Assumptions: without an arrow": (sensitivity.ARROWS,),
    "Several attributes at once": (several_attributes,),
    "Worth: what was clipped, and intervals without width": (reliability,),
}
MEASURES = measures(*_PARTS)
GLOSSARY = {
    "complainant": "a member of a group other than the reference group, whatever was decided on it",
    "control group": "the k applicants of a complainant's own group who are most like it",
    "test group": "the k applicants of the reference group most like what the complainant would have been there",
    "delta": "share of unfavourable decisions in the control group less that in the test group",
    "detected": "delta is above tau; chance alone brings that about for many, so that it is no finding by itself",
    "significant": "the test of a complainant's delta is significant after Benjamini-Hochberg over its group",
    "CST effect, ST effect": "mean of delta over a group's complainants, adjusted by regression for what neighbours "
    "still differ in; of CST in total, of ST among equals",
    "tau": "difference of the two shares above which a complainant is detected",
    "ST": "situation testing: as CST, with the test group around the complainant as it is",
    "CST": "counterfactual situation testing: with the test group around the imagined applicant",
    "CST with centres": "as CST, with the complainant and the imagined applicant counted in their groups",
    "CF": "counterfactual fairness: refused, and as the imagined applicant not",
    "positive discrimination": "the control group was refused less often than the test group, by more than tau",
    "labels permuted": "group membership dealt out at random among applicants alike in the categories that it does not "
    "reach, and the same search run again: what the method finds where there is nothing to find",
    "imagined applicant": "the complainant as it would have been as a member of the reference group (its "
    "counterfactual), under the causal graph of the audit spec; or who stands for it, where the audit asks for another "
    "generator: the most comparable real applicant, or one with the mediators that GCFN's generators imagine",
    "causal graph": "what is assumed to cause what; arrows lead from causes to effects",
    "mechanism": "how a column comes about from its causes and from noise of its own",
    "noise": "what a column's causes do not explain; it is kept as the applicant's own",
}


def limits(material: Material) -> tuple[str, ...]:
    """What situation testing cannot show."""
    return tuple(situation_limits.limits(material))


def chapter(material: Material) -> Section:
    """The question, the assumptions, then the model's decisions and the lender's."""
    before = (causes.section(material), counterfactuals.section(material))
    makers = by_maker(material, "cst", Situations, (effects, significance), _BELOW, _left_out)
    parts = (*(part for part in before if part.words), *makers)
    return Section("Situations: counterfactual situation testing (CST)", "cst", _question(material), parts=parts)


def _question(material: Material) -> tuple[str, ...]:
    k = material.asked(CstSettings).k
    return (
        f"{QUESTION} For every applicant of another group (complainant), whatever was decided on it, two groups of {k} "
        "are set side by side. The control group are those of its own group who are most like it. The test group are "
        "those of the reference group who are most like what it would have been there: who compares like with like "
        "takes what membership did to an application before it was made as given.",
        "p is the share of unfavourable decisions in a group, and delta is p in the control group less p in the test "
        "group. Above 0, members of the complainant's group were refused more often. Beside it stand situation testing "
        "(ST), whose test group is around the complainant as it is, and counterfactual fairness (CF), which asks if "
        "the complainant was refused and the imagined applicant would not be.",
        "The headlines are two effects on a whole group, in points, with intervals: CST (total) and ST (direct). The "
        "shares of complainants below them depend on k. They and the tests of single complainants are for the choice "
        "of files to read: delta above 0 alone is brought about by chance for many. What this method cannot tell "
        "stands on the first page.",
    )


def _left_out(material: Material, maker: str) -> Iterator[str]:
    """Why variants are missing."""
    if any(CST in s.variants and CF not in s.variants for s in Situations.of(material, maker)):
        yield (
            "Only ST and CST without centres stand here: who made these decisions cannot be asked what it would have "
            "decided on an imagined applicant. Counting the centres, and CF, need the decision on the applicant and on "
            "the imagined one from the same decision maker; a fitted model's errors would else pass for findings."
        )
