"""CEC's section: whether a model has the same reasons for comparable applicants of different groups.

Here belongs the order of the chapter: the score above its floor first, then the regimes with the theta that they hang
on, then where reasons part, then what the pairs and the attributions are worth, and last the models that were trained
for consistency, where there are any. Each part is a module of its own.
"""

from tasks.methods.cec.report import features, matches, reading, regimes, scores
from tasks.methods.cec.report import limits as reasons_limits
from tasks.methods.cec.report.lookups import Reasons
from tasks.methods.cec.report.trained import reading as trained_read
from tasks.methods.cec.report.trained import tables
from tasks.methods.cec.report.trained.lookups import Comparison, comparisons, of_the_audited
from tasks.methods.cec.settings import CecSettings
from tasks.reporting.chapters.builder import by_maker, glossary, measures, part
from tasks.reporting.material import Material, anchor
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "Does the model have the same reasons for comparable applicants of different groups with the same outcome?"
MEASURES = measures(scores, regimes, features, matches, tables)
GLOSSARY = {
    "CEC": "counterfactual explanation consistency: how far the model's reasons for two comparable applicants lie "
    "apart, from 0 (the same) to 1 (opposite); half the distance of the directions of their attributions",
    "matching floor": "CEC on the same pairs of a logistic regression of the outcome on the financial features alone: "
    "what applicants who are not quite the same would have between them anyway",
    "CEC above floor": "CEC less the matching floor of the same pairs",
    "CEC within the group": "CEC of the same applicants with matches of their own group",
    "flip": "a pair whose two members the model decides on differently",
    **glossary(regimes, features, matches, trained_read),
}
_BELOW = {
    "Regimes: decisions and reasons together": (regimes,),
    "Features: where reasons part": (features,),
    "Pairs: how comparable they are, and how they were explained": (matches,),
}


def limits(material: Material) -> tuple[str, ...]:
    """What comparing explanations cannot show."""
    return (*reasons_limits.limits(of_the_audited(material)), *trained_read.limits(material))


def chapter(material: Material) -> Section:
    """The question, then what was found in the model, then what training for consistency would come to."""
    own, trained = of_the_audited(material), tuple(comparisons(material))
    parts = by_maker(own, "cec", Reasons, (reading, scores), _BELOW, lambda of, _: (matches.attributions(of),))
    title = "Reasons: counterfactual explanation consistency (CEC)"
    return Section(title, "cec", _question(own), parts=(*parts, _trained(trained)) if trained else parts)


def _question(material: Material) -> tuple[str, ...]:
    theta = material.asked(CecSettings).theta
    words = (
        "Take two applicants of different groups who are comparable as borrowers and had the same outcome: did the "
        "model have the same reasons? Every applicant of another group is matched with the nearest member of the "
        "reference group in the financial features. What each feature added to the model's logit is worked out for "
        "both, from one starting point, and only the balance of these reasons is compared. CEC is 0 where it is the "
        "same and 1 where one's reasons are the opposite of the other's.",
        "The headline to read is CEC above floor. Two applicants are never quite the same, so that any model's reasons "
        "differ between them: the matching floor is what a model that knows nothing but the financial features scores "
        "on the very same pairs. CEC without its floor says nothing. Comparable applicants also differ in what is not "
        "financial: where it can be done the same applicants are matched with their own group as well, and CEC within "
        "the group is the second yardstick.",
        f"Reasons count as the same up to a CEC of theta = {theta:g}. A pair with the same decision for different "
        "reasons (regime B) is what the method's authors call hidden bias, since no comparison of decisions can see "
        f"it. It is a reason to look, and no proof. {reasons_limits.LENDER}",
    )
    return words if material.makers("cec") else (*words, reasons_limits.NO_MODEL)


def _trained(found: tuple[Comparison, ...]) -> Section:
    attributes = dict.fromkeys(c.view.attribute for c in found)
    parts = tuple(_trained_by(tuple(c for c in found if c.view.attribute == name)) for name in attributes)
    words = (*trained_read.WORDS, *trained_read.CHOOSING)
    return Section("Models trained for consistency", "cec-trained", words, parts=parts)


def _trained_by(found: tuple[Comparison, ...]) -> Section:
    attribute = found[0].view.attribute
    name = anchor("cec", "trained", attribute)
    parts = tuple(part(c.pair, f"{name}-{i}", (trained_read, tables), c) for i, c in enumerate(found, 1))
    return Section(f"By {attribute}", name, parts=parts)
