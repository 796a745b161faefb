"""RAGUEL's section: how far those who were declined are from a favourable decision, and a list that is even in that.

Here belongs the order of the chapter: what the list is, what recourse costs each group, who stands where in the list,
what re-ranking does to the ratio of costs, how even the orders are, and last the recourse on offer. Each part is a
module of its own.
"""

from collections.abc import Iterator

from tasks.methods.raguel.report import blocks, costs, offers, quality, ratio
from tasks.methods.raguel.report.limits import NOBODY, limits
from tasks.methods.raguel.report.lookups import METHOD, UNIT, Ranked, boundary
from tasks.methods.raguel.settings import RaguelSettings
from tasks.reporting.chapters.builder import by_maker, glossary, measures
from tasks.reporting.material import Material
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "How far are declined applicants of each group from a favourable decision, and whom would offers reach?"
MEASURES = measures(costs, blocks, ratio, quality, offers)
GLOSSARY = {
    "recourse weight": "how hard a column is taken to be to change, beside the others; an assumption of the audit spec",
    "counterfactual point": "the nearest point with a favourable decision that an applicant may reach by permitted "
    "changes",
    "FA*IR": "a re-ranking by others that keeps a least number of a group in every top of the list",
    **glossary(blocks, ratio, quality, offers),
}
_BELOW = {
    "Blocks: who stands where": (blocks,),
    "Ratio of costs, before and after": (ratio,),
    "Ranking quality, beside other rules": (quality,),
    "Offers: whom they reach, and what would have to change": (offers,),
}


def chapter(material: Material) -> Section:
    """The question and the assumptions, then the list of each decision maker."""
    parts = by_maker(material, METHOD, Ranked, (costs,), _BELOW, lambda *of: (boundary(*of),))
    tables = (costs.assumptions(material),)
    title = "Ranking by recourse: recourse-aware re-ranking (RAGUEL)"
    return Section(title, METHOD, tuple(_question(material)), tables=tables, parts=parts)


def _question(material: Material) -> Iterator[str]:
    everybody = material.asked(RaguelSettings).listed == "all"
    who = "all applications" if everybody else "applications with an unfavourable decision"
    yield (
        f"{QUESTION} The list holds {who}, those first who are nearest to a favourable one. The distance is the cost "
        f"of recourse, in {UNIT}: how far what an applicant may change would have to change, each column counted "
        "by the weight that the audit spec gives it."
    )
    yield (
        "RAGUEL makes the list anew so that every group has its share of each part of it, by offers to those further "
        "down: what would have to change for them to take a place higher up. Algorithm 1 goes through the whole list "
        "rank by rank; Algorithm 2 exchanges applicants between neighbouring blocks; at any depth they come from any "
        "later block."
    )
    if not material.makers(METHOD):
        yield NOBODY
