"""What RAGUEL cannot show: what its order is by, what it assumes, and what it does not promise.

The limits of these data come with their numbers, as measured; the others are sentences.
"""

from collections.abc import Iterator

from schemas.audit.recourse import Recourse
from schemas.terms import DecisionMaker
from tasks.methods.raguel.report.lookups import HEADLINE, METHOD, Ranked, boundary, is_lower
from tasks.methods.raguel.report.ratio import RATIO
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import count, percent

NOBODY = "Nobody was ranked in this run. Nothing can be said of anybody's cost of recourse, and that is no pass."
ORDER = (
    "The list is ordered by the cost of recourse to one decision maker, and not by merit: who stands high is near a "
    "favourable decision as the applicants are decided on now, whether or not that is right."
)
PER_SWAP = (
    "An exchange between blocks is accepted only if the ratio of costs of its block, where both groups are in it, is "
    "then no lower than just before. That holds for each exchange, and not for a block against how it began, nor for "
    "the block that gives or for the whole list: the paper's Theorem 3.5, which promises more, has a counterexample. A "
    "ratio after re-ranking may be lower than before."
)
STRICT = (
    "An exchange is accepted only if the ratio of costs is then at least {least:.3g}, as the rule `strict` of this run "
    "has it. It may be lower than before, and the paper's Theorem 3.5, which says otherwise, has a counterexample."
)

_OVER: tuple[dict[str, str], ...] = ({}, {"over": "mean_block"})


def limits(material: Material) -> Iterator[str]:
    """What a reader of lists by recourse cost has to know first."""
    found = Ranked.every(material)
    if not found:
        yield NOBODY
        return
    yield ORDER
    for maker in material.makers(METHOD):
        yield f"Of {material.whose(maker)}: {boundary(material, maker)}"
    yield from _of_assumptions(material)
    yield PER_SWAP if found[0].settings.rule == "improve" else STRICT.format(least=1 - found[0].settings.delta)
    yield from _of_falls(found)
    yield from _of_those_left(found)
    yield from _of_few(found)
    yield from _of_confirmation(found)
    yield (
        "An offer is what would have to change, and no promise; that one can be taken up, at that effort, is the audit "
        "spec's assumption. What it would cost a lender or an applicant in money nobody measured."
    )
    yield (
        "Nothing here says that a decision was unlawful. Unequal costs may have many causes, equal ones show no equal "
        "treatment, and re-ranking by group is itself a question for people."
    )


def _of_assumptions(material: Material) -> Iterator[str]:
    columns = [c for c in material.settings.columns.values() if c.used]
    told = sum(1 for c in columns if c.recourse != Recourse())
    said = f"{count(told)} of {count(len(columns))} columns" if told else "none of the columns"
    yield (
        "How hard a column is to change, in which steps and how far, is assumed, and not found in the data: the audit "
        f"spec gives {said} a weight, a step or bounds of its own, and the others count as equally hard. Other weights "
        "give other offers, and of a bounded or stepped search other costs."
    )


def _of_falls(found: tuple[Ranked, ...]) -> Iterator[str]:
    """Where a ratio is lower than before, which a reader of a method that is to raise it must know."""
    fell = [
        f"{r.beside(group)} ({r.view.attribute}, {r.view.whose})"
        for r in found
        for group in r.compared
        if any(
            is_lower(r.get(group, RATIO, o, **over), r.get(group, RATIO, **over)) for o in r.reranked for over in _OVER
        )
    ]
    if fell:
        yield (
            "Here the ratio of the whole list, or its mean over blocks, is lower after some re-ranking than before: "
            f"{listed(fell)}."
        )


def _of_those_left(found: tuple[Ranked, ...]) -> Iterator[str]:
    left = [
        f"{percent(m.value)} in {group} ({r.view.attribute}, {r.view.whose})"
        for r in found
        for group in r.view.groups
        if (m := r.get(group, "unreached_share")) is not None and m.value
    ]
    if left:
        yield (
            f"Without a cost, and so in no list: {listed(left)}. What holds of the others need not hold of them; a "
            "mean cost of those who are within reach makes a group look nearer than it is."
        )


def _of_few(found: tuple[Ranked, ...]) -> Iterator[str]:
    few, gone = [], []
    for r in found:
        for group in r.view.groups:
            m = r.get(group, HEADLINE)
            if m is None or m.value is None:
                gone.append(f"{group} ({r.view.attribute}, {r.view.whose})")
            elif m.n is not None and m.n < r.minimum:
                few.append(f"{m.n} in {group} ({r.view.attribute}, {r.view.whose})")
    if few:
        yield f"Too few listed to say, which is no pass: {listed(few)}; {found[0].minimum} are needed."
    if gone:
        yield f"No mean cost, because withheld or because nobody was listed: {listed(gone)}. That is no pass."


def _of_confirmation(found: tuple[Ranked, ...]) -> Iterator[str]:
    of_model = [r for r in found if r.view.maker == DecisionMaker.MODEL]
    wrong = [
        f"{percent(m.value)} of {group} ({r.view.attribute})"
        for r in of_model
        for group in r.view.groups
        if (m := r.get(group, "recourse_not_confirmed_share")) is not None and m.value
    ]
    if wrong:
        yield (
            "Counterfactual points that the very model does not favour, once they are in the user's units and whole "
            f"steps: {listed(wrong)}. Their costs are rather too low."
        )
    if len(of_model) < len(found):
        yield "No lender can be asked about a counterfactual point or an offer: for its decisions none is confirmed."
