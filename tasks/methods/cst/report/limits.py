"""What CST cannot show: what it assumes, what contradicts that, and where chance or few people make its findings.

The limits of these data come with their numbers, as measured; the others are sentences.
"""

from collections.abc import Iterator

from tasks.methods.cst.report import reliability
from tasks.methods.cst.report.causes import failed_and_tested
from tasks.methods.cst.report.lookups import Situations
from tasks.methods.cst.report.significance import HEADLINE, SHARED, is_small
from tasks.methods.cst.settings import CstSettings
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import count, percent

_OF_MEDIATORS = (
    "Test groups are searched around applicants whose mediators GCFN's generators imagine. Where these do not identify "
    "a person, as its chapter tells, the test group is sought in the wrong place.",
)
_INSTEAD = {
    "nearest": (
        "Test groups are searched around a real applicant of the reference group, the most comparable one with the "
        "same outcome. Nobody was imagined: what membership did to an application before it was made is taken as given "
        "in the columns by which applicants are compared, and all other columns are those of somebody else.",
        "Where the outcome is the lender's decision itself, a match was decided on alike, so that counterfactual "
        "fairness (CF) of the lender finds nobody: that is no result.",
    ),
    "gan": _OF_MEDIATORS,
    "quantile": _OF_MEDIATORS,
}
"""What no data can show of a generator that assumes no causal graph."""


def limits(material: Material) -> Iterator[str]:
    """What a reader of situation testing has to know first."""
    found = Situations.every(material)
    asked = material.settings.methods.of(CstSettings)
    yield from _INSTEAD.get(asked.generator if asked else "", ()) or _of_the_graph(material)
    yield from _of_chance(material, found)
    yield SHARED
    yield from _of_small_groups(found)
    yield from reliability.limits(found)
    yield (
        "Who is like whom is decided by the columns that the audit sees, and by the distance. Two applicants who are "
        "alike in these may differ in what the lender saw."
    )
    yield (
        "A significant test does not show that anybody was treated unlawfully, nor does its absence show the opposite: "
        "too few comparable applicants, or decisions that are refused alike on both sides, leave nothing to find."
    )


def _of_the_graph(material: Material) -> Iterator[str]:
    if not material.settings.causal_graph.edges:
        yield (
            "The audit spec has no causal graph: nobody was imagined in another group, and every difference that "
            "membership itself has brought about is taken as given."
        )
        return
    yield (
        "An imagined applicant is not observed. It follows from the causal graph and its mechanisms, which the audit "
        "spec assumes and no data can confirm; if a cause is missing or an arrow is wrong, test groups are searched in "
        "the wrong place."
    )
    failed, tested = failed_and_tested(material)
    if not tested:
        yield "The causal graph was not checked against the data in this run."
    elif failed:
        yield (
            f"The data speak against the causal graph or its mechanisms in {failed} of {tested} checks: what rests on "
            "imagined applicants holds under assumptions that these data contradict."
        )
    else:
        yield (
            f"None of {tested} checks spoke against the causal graph. That does not show that it is right: a common "
            "cause that nobody recorded leaves no trace in them."
        )
    yield (
        "What membership moved before the application counts as its effect here, whoever brought it about: a finding "
        "may tell of the world behind the application and not of the lender."
    )


def _of_chance(material: Material, found: tuple[Situations, ...]) -> Iterator[str]:
    """Where permuted labels, which leave nothing to find, give more than the level of the tests."""
    null = [(s, g, m) for s in found for g in s.others if (m := s.get(g, f"{HEADLINE}_null", s.main))]
    if found and not null:
        yield "The labels were not permuted in this run, so that what chance alone finds is not known."
    often = [
        f"{group} ({s.view.attribute}, {material.maker(s.view.maker)}) {percent(m.value)}"
        for s, group, m in null
        if m.value is not None and m.value > s.settings.alpha
    ]
    if often:
        yield (
            f"Where there is nothing to find, with the labels permuted, more than {found[0].level} of the complainants "
            f"still have a significant test: {listed(often)}. The share found says nothing without this one beside it."
        )


def _of_small_groups(found: tuple[Situations, ...]) -> Iterator[str]:
    """Groups of which a control group is so large a part that all of them overlap."""
    sizes = {
        (s.view.attribute, group): n
        for s in found
        for group, n in s.sizes.items()
        if n is not None and is_small(n, s.settings.k)
    }
    if sizes:
        k = found[0].settings.k
        named = [f"{k} of {count(n)} in {group} ({attribute})" for (attribute, group), n in sizes.items()]
        yield (
            f"Each control group holds the {k} nearest of the complainant's own group. In a small group they overlap, "
            f"and the smaller it is, the nearer its tests come to one and the same test: {listed(named)}."
        )
