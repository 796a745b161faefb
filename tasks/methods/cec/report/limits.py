"""What CEC cannot show: what pairs differ in, what the floor does not hold, and where few people make a finding.

The limits of these data come with their numbers, as measured; the others are sentences.
"""

from collections.abc import Iterator

from schemas.terms import Role
from tasks.methods.cec.report.lookups import Pair, Reasons
from tasks.methods.cec.report.matches import GIVEN, PIECEWISE, SUBSTITUTED, attributions
from tasks.methods.cec.report.reading import HEADLINE
from tasks.reporting.material import Material, Measure, listed
from tasks.reporting.numbers import count, percent, significant

LENDER = (
    "Only a model can be looked into. Nobody recorded the lender's own reasons, so that nothing is said of them, and "
    "that is no pass."
)
NO_MODEL = (
    "No model was looked into in this run: there was none, or none of its decisions could be explained. Nothing can be "
    "said of anybody's reasons, and that is no pass."
)
Measured = tuple[Reasons, Pair, Measure]


def limits(material: Material) -> Iterator[str]:
    """What a reader of explanations has to know first."""
    found = Reasons.every(material)
    if not found:
        yield NO_MODEL
        return
    yield LENDER
    yield from _of_the_floor(found)
    yield from _of_features(material)
    yield (
        "Members of a pair have the same outcome: the lender's own decision, unless the audit spec names another "
        "column for it. Where the lender decided unequally, those who are made comparable already differ by that."
    )
    yield from _of_matches(material, found)
    yield from _of_reuse(found)
    yield from _of_few(found)
    yield from _of_attributions(material, found)
    yield from _of_theta(found)
    yield (
        "The same decision for different reasons (regime B, hidden bias) is a reason to look at the pair, and no proof "
        "of unequal treatment; nor does its absence show the opposite."
    )


def _measured(found: tuple[Reasons, ...], measure: str) -> list[Measured]:
    """A measure of every headline pair that has a printed value."""
    each = ((s, pair, s.get(pair, measure)) for s in found for pair in s.headline)
    return [(s, pair, m) for s, pair, m in each if m is not None and m.value is not None]


def _named(said: list[Measured], words: str) -> str:
    """Groups with what is said of each, ``words`` naming the value as ``v`` and the counts as ``e`` and ``n``."""
    return listed(
        words.format(group=pair.group, by=s.view.attribute, v=significant(m.value or 0.0), e=m.events or 0, n=m.n or 0)
        for s, pair, m in said
    )


def _of_the_floor(found: tuple[Reasons, ...]) -> Iterator[str]:
    floors = _measured(found, "cec_floor")
    named = f": {_named(floors, '{v} for {group} ({by})')}" if floors else ""
    yield (
        "Two comparable applicants are not the same, so that even a model without any information on groups has "
        f"reasons that differ. What that comes to is the matching floor{named}. Read CEC above floor, and never CEC."
    )
    inside = [(s, p, m) for s, p, m in _measured(found, HEADLINE) if m.low is None or m.low <= 0]
    if inside:
        yield (
            f"Not told to lie above the floor: {_named(inside, '{group} ({by})')}. That does not show that the model "
            "has the same reasons for them."
        )
    within = [(s, p, m) for s, p, m in _measured(found, "cec_above_within_group") if m.low is None or m.low <= 0]
    if within:
        yield (
            "Not told to lie above what the same applicants score with matches of their own group: "
            f"{_named(within, '{group} ({by})')}. What sets reasons apart there need not be the group; it is no pass."
        )


def _of_features(material: Material) -> Iterator[str]:
    columns = {name: c for name, c in material.settings.columns.items() if c.used}
    matched = [c.label or name for name, c in columns.items() if Role.FINANCIAL in c.role]
    rule = material.settings.model.rule
    used = {name: c for name, c in columns.items() if rule is None or name in rule.weights}
    others = [c.label or name for name, c in used.items() if Role.FINANCIAL not in c.role]
    yield (
        f"Comparable means near in {listed(matched)}, which the author of the audit spec declared to be financial. "
        "Other columns would make other pairs."
    )
    if others:
        yield (
            f"The model also uses {count(len(others))} columns by which nobody is matched: {listed(others)}. Where the "
            "members of a pair differ in these, whatever the group, their reasons differ too, and the floor does not "
            "hold that: CEC above floor is no measure of what group membership itself does. CEC within the "
            "group, where it could be measured, shows what such differences come to among people of one group."
        )


def _of_matches(material: Material, found: tuple[Reasons, ...]) -> Iterator[str]:
    if material.settings.model.kind == "file":
        yield (
            "The model came as a file, which does not say whom it learnt from: it may have learnt from applicants and "
            "matches alike, or from either alone. Its reasons for those whom it knew need not be its reasons for "
            "newcomers."
        )
    left = [(s, p, m) for s, p, m in _measured(found, "unmatched_share") if m.events]
    if left:
        yield (
            f"Without a comparable applicant, and so left out: {_named(left, '{e:,} of {n:,} in {group} ({by})')}. "
            "What holds of the others need not hold of them."
        )
    blank = [(s, p, m) for s, p, m in _measured(found, "no_direction_share") if m.events]
    if blank:
        yield (
            f"Matched, but without a direction to compare: {_named(blank, '{e:,} of {n:,} in {group} ({by})')}. They "
            "are in no score and no regime."
        )
    if found[0].settings.maximum_distance is None:
        yield (
            "Everybody is matched with the nearest there is, however far. The distances stand with the matches; a pair "
            "far apart is comparable in name only."
        )


def _of_reuse(found: tuple[Reasons, ...]) -> Iterator[str]:
    reused = [(s, p, m) for s, p, m in _measured(found, "match_reuse_largest") if (m.value or 0) > 1]
    if reused:
        named = listed(
            f"up to {count(m.value or 0)} pairs a match in {p.group} ({s.view.attribute})" for s, p, m in reused
        )
        yield (
            f"Pairs share matches ({named}), so that they are not independent, and every interval of this method is "
            "narrower than it should be."
        )


def _of_few(found: tuple[Reasons, ...]) -> Iterator[str]:
    few = [(s, p, m) for s, p, m in _measured(found, "cec") if m.n is not None and m.n < s.minimum]
    if few:
        named = _named(few, "{n} in {group} ({by})")
        yield f"Too few pairs to say, which is no pass: {named}; {few[0][0].minimum} are needed."
    gone = [f"{p.group} ({s.view.attribute})" for s in found for p in s.headline if not _known(s, p)]
    if gone:
        yield f"No score, because withheld or because nobody could be compared: {listed(gone)}. That is no pass."


def _known(s: Reasons, pair: Pair) -> bool:
    m = s.get(pair, "cec")
    return m is not None and m.value is not None


def _of_attributions(material: Material, found: tuple[Reasons, ...]) -> Iterator[str]:
    kind = material.settings.model.kind
    if kind in SUBSTITUTED:
        yield (
            f"A {SUBSTITUTED[kind]} has no gradient. What is compared are differences "
            "along a path, a substitute that is not integrated gradients: scores are not those that the method's "
            "paper speaks of."
        )
    if kind in (PIECEWISE, GIVEN):
        yield attributions(material)
    wrong = [(s, p, m) for s, p, m in _measured(found, "incomplete_share") if m.value]
    if wrong:
        named = listed(f"{percent(m.value or 0.0)} in {p.group} ({s.view.attribute})" for s, p, m in wrong)
        yield f"Attributions that do not add up to what they explain: {named}. Scores of such pairs are approximate."


def _of_theta(found: tuple[Reasons, ...]) -> Iterator[str]:
    settings = found[0].settings
    said = (
        f"From which CEC on reasons are different is a choice: theta = {settings.theta:g} here, and none is published."
    )
    yield f"{said} " + (
        "The shares at every other theta stand beside."
        if settings.theta_steps
        else "This run made no curve over theta, so that what hangs on it is not known."
    )
