"""What GCFN cannot show: what it assumes, what is not identified, and who was not imagined.

The limits of these data come with their numbers, as measured; the others are sentences.
"""

from collections.abc import Iterator

from tasks.methods.gcfn.report.checks import in_doubt
from tasks.methods.gcfn.report.lookups import HEADLINE, ROUNDED, Generators, Mediated, generators, mediated
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import count, percent

LENDER = (
    "What the lender would have decided on an imagined applicant nobody can know: only a model can be asked. Nothing "
    "is said of the lender's own decisions here, and that is no pass."
)
NO_MODEL = (
    "No model was asked about imagined applicants in this run: there was none, or nobody could be imagined. Nothing "
    "can be said of anybody's decisions, and that is no pass."
)


def limits(material: Material) -> Iterator[str]:
    """What a reader of counterfactual mediators has to know first."""
    found, asked = list(generators(material)), list(mediated(material))
    yield LENDER if asked else NO_MODEL
    for g in found:
        yield from _of_the_roles(g)
    yield from _of_identification(found, asked)
    yield from _of_those_left(asked)
    yield from _of_training(found)
    if any(m.coarse for m in asked):
        yield ROUNDED
    yield (
        "That a decision would change with the mediators does not say that the change is unjust: whether what the "
        "attribute did to a mediator may count is a question for people. Nor does an unchanged decision show that the "
        "attribute plays no part: whatever reaches the decision through covariates is not looked at."
    )


def _of_the_roles(g: Generators) -> Iterator[str]:
    """The assumption that all else rests on."""
    held = listed(g.covariates) if g.covariates else "nothing"
    yield (
        f"Assumed by the author of the audit spec, and not found in the data: {g.attribute.name} moves "
        f"{listed(g.mediators)} (mediators), and does not move {held} (covariates). A covariate that it does move "
        "hides a part of its effect; a common cause of both that nobody recorded is taken for an effect."
    )
    if g.others:
        yield (
            f"Neither mediators nor covariates of {g.attribute.name}: {listed(g.others)}. They stay as they are where "
            "an applicant is imagined, and generators do not look at them; what the attribute does to them is left out."
        )


def _of_identification(found: list[Generators], asked: list[Mediated]) -> Iterator[str]:
    simple = [g.attribute.name for g in found if g.simple]
    if simple:
        yield (
            f"With one continuous mediator ({listed(simple)}) a person's counterfactual is known up to a flip of ranks "
            "at best, and only if one quantity moves the mediator in one direction (the quantile map's conditions)."
        )
    other = [g.attribute.name for g in found if not g.simple]
    if other:
        yield (
            f"With several mediators, or one with categories ({listed(other)}), a person's counterfactual is not "
            "identified: other answers fit the data as well and would change the decisions of other people."
        )
    if any(g.settings.several for g in found):
        yield (
            "Several generators and the worst of them guard against an odd answer and do not prove the right one: "
            "networks of one kind can agree on the same wrong answer."
        )
    elif found:
        yield "One generator imagined everybody: nothing shows about whom it is wrong."
    flagged = [said for m in asked for said in _flagged(m)]
    if flagged:
        yield f"Not identified, since generators part about them: {listed(flagged)}."


def _flagged(m: Mediated) -> Iterator[str]:
    for group in m.view.groups:
        found = m.get(group, "not_identified_share")
        if found is not None and found.value:
            yield f"{percent(found.value)} in {group} ({m.view.attribute})"


def _of_those_left(asked: list[Mediated]) -> Iterator[str]:
    """Groups that no generator could learn from, and groups too small to read."""
    left = [(m, group, n) for m in asked for group in m.view.groups if (n := m.get(group, "unmediated_share"))]
    gone = [f"{group} ({m.view.attribute})" for m, group, n in left if n.value]
    if gone:
        yield (
            f"Not imagined: {listed(gone)}. A generator needs more applicants of a group than that, and a mediator "
            "that varies in it. Nothing is said of them, and that is no pass."
        )
    each = [(m, group, found) for m in asked for group in m.view.groups if (found := m.get(group, HEADLINE))]
    few = [
        f"{count(found.n)} in {group} ({m.view.attribute})"
        for m, group, found in each
        if found.n is not None and found.n < m.minimum
    ]
    if few:
        yield f"Too few applicants imagined to say anything, which is no pass: {listed(few)}."


def _of_training(found: list[Generators]) -> Iterator[str]:
    if any(g.settings.generator == "gan" for g in found):
        yield (
            "The training of adversarial networks is a game that need not end well, and it hangs on chance: another "
            "seed makes other networks. Intervals are of the applicants alone and hold nothing of that."
        )
    if any(g.settings.generator == "quantile" for g in found):
        yield (
            "Every mediator was mapped by its quantiles, by itself: how mediators hang together is kept only as far as "
            "ranks are, and each must be moved by one quantity of its own in one direction."
        )
    doubts = {g.attribute.name: in_doubt(g) for g in found}
    for name, doubt in doubts.items():
        if doubt:
            yield f"The checks of the generators for {name} are a reason for doubt: {doubt}."
