"""RAGUEL's section: how far those who were declined are from a favourable decision, and a list that is even in that.

Here belongs the order of the chapter: what the list is, what recourse costs each group, who stands where in the list,
what re-ranking does to the ratio of costs, how even the orders are, and last the recourse on offer. Each part is a
module of its own.
"""

from collections.abc import Iterator

from tasks.methods.raguel.report import blocks, costs, offers, quality, ratio
from tasks.methods.raguel.report import limits as ranked_limits
from tasks.methods.raguel.report.lookups import METHOD, UNIT, Ranked, boundary, ranked
from tasks.methods.raguel.settings import RaguelSettings
from tasks.reporting.material import Material, anchor
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

QUESTION = "How far are declined applicants of each group from a favourable decision, and whom would offers reach?"
MEASURES = {
    **costs.MEASURES,
    **blocks.MEASURES,
    **ratio.MEASURES,
    **quality.MEASURES,
    **offers.MEASURES,
}
GLOSSARY = {
    "recourse weight": "how hard a column is taken to be to change, beside the others; an assumption of the audit spec",
    "counterfactual point": "the nearest point with a favourable decision that an applicant may reach by permitted "
    "changes",
    "FA*IR": "a re-ranking by others that keeps a least number of a group in every top of the list",
    **blocks.GLOSSARY,
    **ratio.GLOSSARY,
    **quality.GLOSSARY,
    **offers.GLOSSARY,
}


def limits(material: Material) -> tuple[str, ...]:
    """What a list by recourse cost cannot show."""
    return tuple(ranked_limits.limits(material))


def chapter(material: Material) -> Section:
    """The question and the assumptions, then the list of each decision maker."""
    parts = tuple(_maker(material, maker) for maker in material.makers(METHOD))
    tables = (costs.assumptions(material),)
    title = "Ranking by recourse: recourse-aware re-ranking (RAGUEL)"
    return Section(title, METHOD, tuple(_question(material)), tables=tables, parts=parts)


def _question(material: Material) -> Iterator[str]:
    settings = material.settings.methods.of(RaguelSettings)
    everybody = settings is not None and settings.listed == "all"
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
        yield ranked_limits.NOBODY


def _maker(material: Material, maker: str) -> Section:
    title = material.whose(maker)
    parts = tuple(_attribute(r) for r in ranked(material, maker))
    return Section(title[0].upper() + title[1:], f"{METHOD}-{maker}", (boundary(material, maker),), parts=parts)


def _attribute(r: Ranked) -> Section:
    name = anchor(METHOD, r.view.maker, r.view.attribute)
    return Section(
        f"By {r.view.attribute}",
        name,
        points=costs.readings(r),
        figures=costs.figures(r),
        tables=costs.tables(r),
        parts=tuple(part for part in _below(r, name) if part.tables or part.figures),
    )


def _below(r: Ranked, name: str) -> Iterator[Section]:
    yield Section(
        "Blocks: who stands where",
        f"{name}-1",
        points=blocks.readings(r),
        figures=blocks.figures(r),
        tables=blocks.tables(r),
    )
    yield Section(
        "Ratio of costs, before and after",
        f"{name}-2",
        points=ratio.readings(r),
        figures=ratio.figures(r),
        tables=ratio.tables(r),
    )
    yield Section(
        "Ranking quality, beside other rules",
        f"{name}-3",
        quality.WORDS,
        points=quality.readings(r),
        tables=quality.tables(r),
    )
    yield Section(
        "Offers: whom they reach, and what would have to change",
        f"{name}-4",
        offers.WORDS,
        points=offers.readings(r),
        tables=offers.tables(r),
    )
