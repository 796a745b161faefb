"""The first page computed a second time, with pandas and plain text, from the published tables of a run.

Scope: runs of one protected attribute and one decision maker, with short names. Templates are not read here.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from schemas.tables.verdicts import PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL, REPORTED, STATES, VERDICTS
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.material import Material

ORDER = ("breach", "insufficient_evidence", "within", "no_limit", "descriptive", "not_run")
MINUS = "\N{MINUS SIGN}"
THEORIES = ("outcome", "direct", "total", "recourse", "reasons")


@dataclass(frozen=True)
class Page:
    """A page as it was made, and the tables that it was made of."""

    material: Material

    @cached_property
    def decision(self):
        """As it was made."""
        return decide(run_of(self.material))

    @cached_property
    def verdicts(self):
        """Rows of groups that decide or stand beside."""
        every = pd.DataFrame([row for row in self.material.rows(VERDICTS) if row["reason"] != REPORTED])
        if every.empty:
            return pd.DataFrame(columns=[column.name for column in VERDICTS.columns])
        numbers = ["value", "low", "high", "bias", "limit", "detectable", "needed", "n", "events", "n_reference"]
        every[numbers] = every[numbers].apply(pd.to_numeric)
        return every[~every.role.isin(["theory", "watch"])]

    @cached_property
    def wholes(self):
        """State and reason of each theory as a whole."""
        rows = [row for row in self.material.rows(VERDICTS) if row["role"] == "theory"]
        return {row["theory"]: (row["state"], row["reason"]) for row in rows}

    @cached_property
    def approvals(self):
        """Published approvals by group: n, share, reason."""
        rows = [m for m in self.material.measures if m.measure == "approval_rate"]
        every = pd.DataFrame([vars(m) for m in rows], columns=["group", "n", "value", "reason", "decision_maker"])
        return every.assign(n=pd.to_numeric(every.n), value=pd.to_numeric(every.value))

    @property
    def reference(self):
        """Name of the reference group."""
        named = set(self.verdicts.reference_group.dropna()) or set(self.approvals.group)
        return self.material.settings.protected[0].reference if named else "reference"

    @property
    def attribute(self):
        """Name of the protected attribute."""
        return self.material.settings.protected[0].name

    @cached_property
    def sizes(self):
        """People of each judged group: as published, or else the most of any of its rows; NaN where withheld."""
        own = self.approvals[self.approvals.group != self.reference].set_index("group").n
        of_rows = self.verdicts[self.verdicts.group != ""].groupby("group").n.max()
        return pd.concat([own, of_rows[~of_rows.index.isin(own.index)]])

    @cached_property
    def groups(self):
        """Judged groups, the largest first."""
        return sorted(self.sizes.index, key=lambda name: (-self.sizes.fillna(0)[name], name))

    @cached_property
    def enough(self):
        """Those with the people that a verdict needs."""
        return [name for name in self.groups if self.sizes[name] >= self.material.settings.verdicts.minimum_n]

    def row(self, theory, group, measure=None):
        """The row that decides of a group in a theory, or that of a second measure; None without one."""
        own = self.verdicts[(self.verdicts.theory == theory) & (self.verdicts.group == group)]
        if measure:
            own = own[own.measure == measure]
        adds = own[(own.role == "adds") & (own.state == "breach")]
        primary = own[own.role != "adds"] if measure else own[own.role == "primary"]
        outside = not primary.empty and primary.iloc[0].state == "breach"
        found = primary if adds.empty or outside else adds
        return None if found.empty else found.iloc[0]

    def disagree(self, theory, group):
        """Whether one row of a group is outside and another one inside."""
        own = self.verdicts[(self.verdicts.theory == theory) & (self.verdicts.group == group)]
        return {"breach", "within"} <= set(own.state)

    def state(self, theory, group):
        """How a group stands in a theory."""
        row = self.row(theory, group)
        if self.disagree(theory, group):
            return "insufficient_evidence"
        return "not_run" if row is None else row.state

    def stands(self, theory):
        """Groups that a theory has a row of, with their states."""
        own = set(self.verdicts[self.verdicts.theory == theory].group)
        return {group: self.state(theory, group) for group in self.groups if group in own}

    def rate(self, group):
        """Published share approved; NaN where withheld."""
        shares = self.approvals.set_index("group").value
        return float(shares.get(group, math.nan))

    def gap(self, group):
        """Plain gap in points: the difference of both published rates."""
        return 100 * (self.rate(group) - self.rate(self.reference))

    @cached_property
    def chosen(self):
        """The group of the figures: whose adjusted interval ends furthest from no difference."""
        lows = {g: r.low for g in self.enough if (r := self.row("direct", g)) is not None and pd.notna(r.low)}
        highs = {g: -r.high for g in self.enough if (r := self.row("outcome", g)) is not None and pd.notna(r.high)}
        ends = lows or highs
        return max(ends, key=lambda name: ends[name]) if ends else (self.enough[0] if self.enough else None)

    def widened_only(self, group):
        """Whether the adjusted interval is open for its widening alone."""
        row = self.row("direct", group)
        if row is None or row.state != "insufficient_evidence" or row.withheld or not row.bias > 0 or pd.isna(row.low):
            return False
        return bool(row.low + row.bias > row.limit) and not self.disagree("direct", group)

    def detectable(self, theory, group):
        """Points that a row would have found in four of five audits."""
        row = self.row(theory, group)
        if row is None or pd.isna(row.detectable):
            return math.nan
        return 100 * (row.detectable if theory != "outcome" else self.rate(self.reference) * (1 - row.detectable))

    @cached_property
    def waterfall(self):
        """Published numbers of rows in and out."""
        return pd.DataFrame(self.material.rows(PUBLISHED_WATERFALL))

    @cached_property
    def lacking(self):
        """The published row on who lacks any feature; None without one."""
        rows = [row for row in self.material.rows(PUBLISHED_MISSINGNESS) if row["feature"] == "any"]
        return rows[0] if rows else None


def headline(page):
    """Rule and words of the first sentence, from the states of all groups."""
    if page.decision.headline.rule == "check_data":
        return "check_data", f"Check the data first: {_warning(page)}."
    states = {group: (page.state("outcome", group), page.state("direct", group)) for group in page.groups}
    white = page.reference
    for rule, holds, words in (
        ("both_outside", lambda g: states[g] == ("breach", "breach"),
         f"were approved less often than {white} applicants with similar records on file."),
        ("adjusted_outside", lambda g: states[g][1] == "breach",
         f"were approved less often than similar {white} applicants, whatever the plain rates show."),
        ("outside_but_for_missing", page.widened_only, f"were approved less often than {white} applicants with similar "
         "records on file; columns missing here could account for it."),
        ("gap_outside_adjusted_inside", lambda g: states[g] == ("breach", "within"), "were approved less often; "
         "between similar records no difference beyond the limit is shown."),
        ("gap_outside_no_limit", lambda g: states[g] == ("breach", "no_limit"), "were approved less often; no limit "
         "was set for the difference between similar records."),
        ("gap_outside", lambda g: states[g][0] == "breach",
         "were approved less often; these data do not say whether similar records were, too."),
    ):  # fmt: skip
        named = [group for group in page.enough if holds(group)]
        if named:
            who = f"{' and '.join(named)} applicants" if len(named) < 3 else f"Applicants of {len(named)} groups"
            return rule, _fitting(f"{who[0].upper()}{who[1:]} {words}", white)
    return _of_all(page, set(states.values()))


def _fitting(text, white):
    """The sentence of at most 25 words: its shorter form, then without the name of the reference group."""
    for name in (white, "reference"):
        long = text.replace(f"{white} applicants", f"{name} applicants")
        short = long.replace(f"{name} applicants with similar records on file", f"similar {name} applicants")
        for each in (long, short):
            if len(each.split()) <= 25:
                return each
    return short


def _of_all(page, states):
    outside = [theory for theory in page.wholes if page.wholes[theory][0] == "breach"]
    also = _elsewhere(outside)
    if states == {("within", "within")} and not also:
        sizes = {t: [page.detectable(t, g) for g in page.groups] for t in ("outcome", "direct")}
        if np.isnan([*sizes["outcome"], *sizes["direct"]]).any():
            return "inside_no_size", "No difference against a group beyond the limits is shown."
        plain, adjusted = (math.ceil(max(sizes[theory]) - 1e-9) for theory in ("outcome", "direct"))
        return "inside", (
            f"No difference against a group beyond the limits is shown; {plain} points in approvals or {adjusted} "
            "points between similar records would likely be seen."
        )
    if states == {("within", "within")}:
        words = f"No difference in approvals against a group beyond the limits is shown; outside limit: {also}."
        return "inside_elsewhere", words
    if states == {("no_limit", "no_limit")}:
        if also:
            return "no_limit_elsewhere", f"No limit was set for approvals; outside limit: {also}."
        return "no_limit", "No limit was set for approvals: the figures below come without a verdict."
    if also:
        return "too_little_elsewhere", f"Too little to say here; outside limit: {also}."
    return "too_little", "Too little to say."


def _elsewhere(outside):
    names = {
        **{"direct": "similar records of groups not named here", "outcome": "approvals of groups not named here"},
        **{"total": "the assumed graph", "recourse": "the way to approval", "reasons": "the model's reasons"},
        "own": "limits of this spec",
    }
    if len(outside) > 2:
        return f"{len(outside)} questions below"
    return " and ".join(names[each] for each in sorted(outside, key=[*names].index))


def _warning(page):
    swapped = any(row["reversed"] for row in page.material.tables["published_decision_direction"])
    failed = any(not row["success"] for row in page.material.tables["published_validations"])
    words = ["approved and denied may be exchanged"] * swapped + ["checks of the source failed"] * failed
    return words[0] if len(words) == 1 else f"{words[0]}, and {len(words) - 1} more"


def figures(page):
    """Value and both ends of each comparison in points, and the people that it is made of; NaN where there is none."""
    group = page.chosen
    plain, adjusted = page.row("outcome", group), page.row("direct", group)
    nearest = page.row("direct", group, "st_effect")
    rate = page.rate(page.reference)
    of = {}
    if plain is not None:
        low, high = (100 * (min(rate * end, 1) - rate) for end in (plain.low, plain.high))
        of["all"] = (page.gap(group), low, high, plain.n)
    for name, row in (("adjusted", adjusted), ("nearest", nearest)):
        if row is not None:
            of[name] = (-100 * row.value, -100 * row.high, -100 * row.low, row.n)
    return {name: of.get(name, (math.nan,) * 4) for name in ("all", "adjusted", "nearest")}


def caption(page):
    """Among how many groups the one of the figures was chosen, and which intervals are widened."""
    column = "low" if page.verdicts[page.verdicts.theory == "direct"].low.notna().any() else "high"
    theory = "direct" if column == "low" else "outcome"
    known = [r for g in page.enough if (r := page.row(theory, g)) is not None and pd.notna(r[column])]
    among = len(known) or len(page.enough)
    rows = {"Adjusted": page.row("direct", page.chosen), "Nearest": page.row("direct", page.chosen, "st_effect")}
    wide = [name for name, row in rows.items() if row is not None and row.bias > 0 and pd.notna(row.low)]
    if "Nearest" in wide and page.decision.figures.comparisons[2].label != "Nearest":
        wide[-1] = "Nearest 15"
    chosen = f"Chosen among {among} groups." if among > 1 else ""
    widened = f"Widened for columns missing here: {' and '.join(wide)}." if wide else ""
    return " ".join(filter(None, (chosen, widened)))


def state_words(states, noun="groups"):
    """How many are in each state, the worst first: ``2 groups outside limit, 1 inside limit``."""
    counted = [(state, sum(each == state for each in states)) for state in ORDER]
    parts = [(n, STATES[state]) for state, n in counted if n]
    first, *others = parts
    one = f"{first[0]} {noun if first[0] > 1 else noun[:-1]} {first[1]}" if noun else f"{first[0]} {first[1]}"
    return ", ".join([one, *(f"{n} {word}" for n, word in others)])
