"""The chapter of adjusted disparities: the answer for each group, the ladder, an unseen column, comparability.

Here belongs the order of the chapter. Each part is a module of its own.
"""

from tasks.methods.adjusted.report import comparability, effects, exchanged, sensitivity
from tasks.methods.adjusted.report import limits as ladder_limits
from tasks.methods.adjusted.report.lookups import METHOD, Ladder
from tasks.reporting.chapters.builder import by_maker, glossary, measures
from tasks.reporting.material import Material
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "How much more often is a group denied than similar applicants of the reference group?"
MEASURES = measures(effects, exchanged)
GLOSSARY = {
    "adjusted difference": "difference of the probability of denial between a group and the reference group among "
    "applicants who are alike in the controls of a rung",
    "control": "a column in which applicants are made alike: terms of the loan, finances, history, place",
    "rung": "a step of the denial ladder: it adjusts for one more block of controls than the step below it",
    **glossary(sensitivity, comparability, exchanged),
}
_BELOW = {
    "An unseen column: what it could do": (sensitivity,),
    "Comparability: where both groups are found": (comparability,),
}


def limits(material: Material) -> tuple[str, ...]:
    """What the ladder cannot show."""
    return tuple(ladder_limits.limits(material))


def chapter(material: Material) -> Section:
    """The question, then the ladder of each decision maker and protected attribute."""
    words = (
        f"{QUESTION} The ladder answers with regressions of the decision on the group and on blocks of columns, one "
        f"block more on each rung: {_blocks(material)}. What is left on the judged rung is the difference among "
        "similar applicants.",
        "The rung that is judged is fixed before the run, and so is the estimate: a logit, its effect averaged over "
        "the group's own members. Other estimates stand beside it, so that a reader sees whether the answer "
        "hangs on one.",
    )
    parts = by_maker(material, METHOD, Ladder, (effects, exchanged), _BELOW)
    nothing = () if parts else ("No group could be compared: nobody's decisions are explained, or there is one group.",)
    return Section("Similar applicants: the denial ladder", METHOD, (*words, *nothing), parts=parts)


def _blocks(material: Material) -> str:
    """The blocks in the order of the rungs, of the longest ladder."""
    longest = max((found.rungs for found in Ladder.every(material)), key=len, default={0: ""})
    blocks = longest[max(longest)].split(" + ") if len(longest) > 1 else []
    return ", ".join(("first none", *(f"then {block}" for block in blocks)))
