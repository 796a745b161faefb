"""Sentences of the questions and lines of the first page, computed a second time (``first_page_again``)."""

import math
import re

import pandas as pd
from first_page_again import MINUS, ORDER, Page, state_words

from schemas.questions import STATES

SECOND = {
    "similar_applicants": "an adjusted gap",
    "causal_model": "a gap by the assumed graph",
    "approval_rates": "a plain gap",
}
WHY_NOT = {
    "the method cst is off": "Its method was switched off.",
    "the spec has no feature": "The spec has no feature.",
    "not measured: every application of white lacks a feature": "A group has no application with every feature.",
    "the model does not see the group": "A fitted model does not see the group.",
    "no group is judged": "No group was judged.",
    "nothing was measured": "Nothing was measured.",
}


def question(page: Page, theory: str) -> str:
    """The sentence of a theory."""
    if theory == "approval_rates" and len(page.approvals):
        return rates(page)
    state, reason = page.wholes.get(theory, ("not_run", ""))
    if state == "not_run":
        off = "Its method was switched off." if re.fullmatch("the method .* is off", reason) else ""
        return off or WHY_NOT.get(reason, "The page of this question says why.")
    if theory == "own_limits":
        rows = [
            row for row in page.material.tables["published_verdicts"] if row["theory"] == "own_limits" and row["group"]
        ]
        words = state_words([row["state"] for row in rows], "")
        limits = f"{len(rows)} limit{'s' * (len(rows) != 1)}"
        same = sum(row["state"] == state for row in rows)
        long = f"Of {limits}: {words}."
        return long if len(long.split()) <= 16 else f"{same} of {limits} {STATES[state].words}."
    if not page.stands(theory):
        return "The page of this question says why."
    own = {"similar_applicants": effects, "causal_model": effects, "path_to_approval": ways, "model_reasons": reasons}
    said = own[theory](page, theory, state) if theory in own else ""
    if said and len(said.split()) <= 16:
        return said
    states = [row_state(page, theory, group) for group in page.stands(theory)]
    hidden = sum(word == "withheld" for word in states)
    if hidden == len(states):
        return f"{hidden} group{'s' * (hidden != 1)} withheld."
    words = f"{state_words(states)}."
    same = sum(each == state for each in states)
    return words if len(words.split()) <= 16 else f"{same} of {len(states)} groups {STATES[state].words}."


def row_state(page, theory, group):
    """State of a group, or that its numbers are withheld."""
    row = page.row(theory, group)
    return "withheld" if row is not None and row.withheld else page.state(theory, group)


def rates(page: Page) -> str:
    """Approvals of 100, the highest first."""
    model = set(page.approvals.decision_maker) == {"model"}
    head = "Of 100 applications that the model scored, it approved" if model else "Of 100 applicants approved"
    known = page.approvals.copy()
    ends = known.reason.str.extract(r"; (more than|below) ([\d.]+) % denied$")
    bound = 100 - pd.to_numeric(ends[1])
    known["order"] = (100 * known.value.astype(float)).fillna(bound)
    known["text"] = [
        ("more than " if end == "below" else "less than ") + f"{of:.0f}" if isinstance(end, str) else f"{rate:.0f}"
        for end, of, rate in zip(ends[0], bound, known.order, strict=True)
    ]
    known.loc[known.order.isna(), "text"] = "withheld"
    if known.order.isna().all():
        return "Approval rates are withheld."
    known["order"] = known.order.round(6)
    ordered = known.sort_values(["order", "group"], ascending=[False, True], na_position="last")
    long = f"{head}: {', '.join(f'{g} {t}' for g, t in zip(ordered.group, ordered.text, strict=True))}."
    if len(long.split()) <= 16:
        return long
    others = ordered[(ordered.group != page.reference) & ordered.order.notna()]
    hidden = f"; {known.order.isna().sum()} withheld" if known.order.isna().any() else ""
    span = " to ".join(dict.fromkeys([others.text.iloc[-1], others.text.iloc[0]]))
    reference = ordered.set_index("group").text.get(page.reference, "withheld")
    if reference == "withheld":
        return f"{head}: {span} in {len(others)} group{'s' * (len(others) > 1)}{hidden}."
    return f"{head}: {page.reference} {reference}; {len(others)} other group{'s' * (len(others) > 1)} {span}{hidden}."


def points(value: float) -> str:
    """Whole points with a sign, as a reader writes them."""
    n = math.floor(abs(value) + 0.5)
    return "0" if n == 0 else f"{MINUS if value < 0 else '+'}{n}"


def part_of_gap(page: Page, group: str) -> str:
    """What part of the plain gap the adjusted one is, from both numbers."""
    plain, adjusted = page.gap(group), -100 * page.row("similar_applicants", group).value
    if not plain < 0 or adjusted >= 0 or adjusted < plain:
        return ""
    share = adjusted / plain
    for word, low, high in (("little", 0, 0.25), ("about half", 0.35, 0.65 + 1e-12), ("most", 0.75 + 1e-12, 1.1)):
        if low <= share < high:
            return word
    return f"{100 * share:.0f} %"


def effects(page: Page, theory: str, state: str) -> str:
    """Points by group, the worst state first."""
    stands = page.stands(theory)
    hidden = [g for g in stands if page.row(theory, g).withheld]
    ordered = sorted(stands, key=lambda g: (g in hidden, ORDER.index(stands[g])))
    parts, first = dict.fromkeys(ordered, ""), True
    for g in ordered:
        value = page.row(theory, g).value
        if value is None or pd.isna(value):
            parts[g] = f"{g} {'withheld' if g in hidden else STATES[stands[g]].words}"
            continue
        unit = (" point" if points(-100 * value)[1:] == "1" else " points") if first else ""
        parts[g], first = f"{g} {points(-100 * value)}{unit}", False
        if page.disagree(theory, g):
            parts[g] += ", methods disagree"
        elif stands[g] != state:
            parts[g] += f", {STATES[stands[g]].words}"
    left = {
        g: part_of_gap(page, g) if theory == "similar_applicants" and stands[g] == "outside" and g not in hidden else ""
        for g in ordered
    }
    if len(ordered) > 1 and len(set(left.values())) == 1 and all(left.values()):
        words = f"{'; '.join(parts.values())}; each {left[ordered[0]]} of the gap."
        if len(words.split()) <= 16:
            return words
    mine = [g for g in ordered if left[g] and stands[g] == state]
    whole = "; ".join(f"{parts[g]}, {left[g]} of the gap" if g in mine else parts[g] for g in ordered)
    return f"{whole}." if len(whole.split()) <= 16 else f"{'; '.join(parts.values())}."


def ways(page: Page, theory: str, state: str) -> str:
    """Costs of the way, denials, or who has none."""
    rows = {group: page.row(theory, group) for group in page.stands(theory)}
    adding = [group for group, row in rows.items() if row.role == "adds"]
    if adding:
        rest = [page.state(theory, group) for group in rows if group not in adding]
        more = f"; {state_words(rest)}" if rest else ""
        return f"More without a way than relabelled groups: {' and '.join(adding)}{more}."
    if state == "inconclusive":
        if pd.isna([row.events for row in rows.values()]).any():
            return ""
        denied = " and ".join(f"{row.events:.0f} {group}" for group, row in rows.items())
        by = " by the model" if {row.decision_maker for row in rows.values()} == {"model"} else ""
        return f"{denied} denials{by}."
    costs = [
        f"{group} {100 * row.value:.0f}" + ("" if row.state == state else f", {STATES[row.state].words}")
        for group, row in sorted(rows.items(), key=lambda pair: ORDER.index(pair[1].state))
    ]
    return f"Reference's cost per 100 of the group's: {'; '.join(costs)}."


def reasons(page: Page, theory: str, state: str) -> str:
    """Whether scores lie above those within one group."""
    values = {group: page.row(theory, group).value for group in page.stands(theory)}
    outside = [group for group in values if page.state(theory, group) == "outside"]
    if outside:
        rest = [page.state(theory, group) for group in values if group not in outside]
        more = f"; {state_words(rest)}" if rest else ""
        return f"More than within one group: {' and '.join(outside)}{more}."
    above = [group for group, value in values.items() if pd.notna(value) and value > 0]
    if above:
        return f"Score above that within one group: {' and '.join(above)}."
    return "" if pd.Series(values).isna().any() else "Not more than within one group."


def left_out(page: Page) -> str:
    """Applications that lack a feature, where they are more than one in twenty."""
    row = page.lacking
    if row is None or not row["missing"]:
        return ""
    used = page.waterfall[(page.waterfall.kind == "used") & (page.waterfall.group == "All")].n.iloc[0]
    if row["missing"] <= 0.05 * (row["missing"] + used):
        return ""
    words = f"{row['missing']:,.0f} applications with missing columns are in no comparison of similar records"
    if row["approval_missing"] is None:
        return f"{words}."
    rates = [100 - 100 * row[name] for name in ("approval_missing", "approval_present")]
    return f"{words}; {rates[0]:.0f} of 100 were denied, against {rates[1]:.0f}."


def lost(page: Page) -> str:
    """Groups of which half or more lack a feature."""
    parts = {}
    for group in page.waterfall.group.unique() if len(page.waterfall) else ():
        own = page.waterfall[page.waterfall.group == group]
        lacking = own[(own.kind == "refused") & (own.stage == "preprocess")]
        used, n = (own[own.kind == kind].n.iloc[0] for kind in ("used", "source"))
        if group != "All" and len(lacking) and n and used <= n / 2:
            named = lacking[lacking.n > 0].sort_values("n", ascending=False).column
            columns = " and ".join(dict.fromkeys(each.replace("_", " ") for each in named))
            parts[group] = (n, f"of {n:,.0f} {group} applicants {used:,.0f} have every feature ({columns})")
    words = [text for _, text in sorted(parts.values(), key=lambda pair: -pair[0])]
    if not words:
        return ""
    for named in (2, 1):
        more = len(words) - named
        rest = [f"{more} more group{'s' * (more > 1)} lost half or more"] if more > 0 else []
        line = f"What applicants with missing features would show: {'; '.join([*words[:named], *rest])}."
        if len(line.split()) <= 34:
            break
    return line


def detectable(page: Page) -> str:
    """Below which size a difference is seen in fewer than four of five audits."""
    for theory in ("similar_applicants", "causal_model", "approval_rates"):
        for group in sorted(page.enough, key=lambda name: name != page.chosen):
            row = page.row(theory, group)
            size = page.detectable(theory, group)
            if row is not None and not row.bias > 0 and page.state(theory, group) == "inconclusive" and size > 0:
                whole = math.floor(size + 1e-9) or math.floor(10 * size) / 10
                return (
                    f"With {row.n:,.0f} {group} applicants {SECOND[theory]} of less than {whole:g} "
                    f"point{'s' * (whole != 1)} is shown outside the limit in fewer than four of five audits."
                )
    return ""


def wait(page: Page) -> str:
    """Applications that would settle an open row, or give a small group its verdict."""
    for theory in ("similar_applicants", "causal_model", "approval_rates"):
        for group in sorted(page.enough, key=lambda name: name != page.chosen):
            row = page.row(theory, group)
            if row is None or page.state(theory, group) != "inconclusive" or pd.isna(row.needed):
                continue
            now = row.n + row.n_reference
            if row.needed > now:
                whose, years = f"{group} and {page.reference} applicants", math.ceil(row.needed / now)
                return _waiting(f"{row.needed:,.0f}", whose, years)
    few = [group for group in page.groups if page.sizes[group] < 30]
    return _waiting("30", f"{few[0]} applicants", math.ceil(30 / page.sizes[few[0]])) if few else ""


def _waiting(needed: str, whose: str, years: int) -> str:
    when = "more than 20 years" if years > 20 else f"{years} year{'s' * (years != 1)}"
    return f"Wait for about {needed} applications of {whose}: {when} at this year's number."
