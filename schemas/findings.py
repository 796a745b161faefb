"""Findings about the judged effect in words: what was found, and what to do next, by cause.

A count of people stands as ``{n}`` or ``{of}`` until the disclosure pass fills it in as it is published.
"""

import re
from collections.abc import Mapping
from typing import Any

NEXT = {
    "copies": "Remove the copied rows at the source, then run the audit again.",
    "missing": "Complete {part} in these files, first where the denied lack it most; then run the audit again.",
    "undecided": "Read 20 of the withdrawn or incomplete files of {group}; ask who proposed to withdraw.",
    "part": "Read 20 denied files of that part beside their approved matches; ask who decides there.",
    "place": "Test the rule about place: run it with and without place on last year's files.",
    "through": "Compare the rules of the branches, officers or channels that the file names.",
    "ratio": "Read all denied files of {group}. They are few.",
    "bands": "Add the figure itself in place of its band.",
    "form": "Add the columns by which the lender decides; compare the estimates of the table readings.",
    "no_noise": "Read the rule: a lender who decides without chance has one.",
}
"""Kind of finding -> what to do next."""


OF_TIME = "time"
"""The part of a finding ``through`` that is about when people applied."""
NEXT_OF_TIME = "Make the quarter or month a control, or audit each quarter alone."


def next_step(finding: Mapping[str, Any]) -> str:
    """What to do next about a finding."""
    if finding["kind"] == "through" and finding["part"] == OF_TIME:
        return NEXT_OF_TIME
    return NEXT[finding["kind"]].format(part=finding["part"], group=finding["group"])


_FILES = (
    'SELECT a.row_id FROM {table} a JOIN {groups} m USING (run, row_id) WHERE run = {run} AND m."group" = {group} AND '
    "m.protected_attribute = {attribute}"
)
_DENIED = _FILES.format(
    table="applications", groups="memberships", run="{run}", group="{group}", attribute="{attribute}"
)
_DENIED += " AND NOT a.favourable"
_PARTS = (
    'SELECT "column", level, n, value, low, high FROM parts WHERE run = {run} AND "group" = {group} AND '
    "protected_attribute = {attribute} ORDER BY value DESC LIMIT 20"
)
_QUERIES = {
    "copies": "SELECT row_id FROM copied_rows WHERE run = {run}",
    "undecided": _FILES.format(
        table="abandoned", groups="abandoned_memberships", run="{run}", group="{group}", attribute="{attribute}"
    )
    + " LIMIT 20",
    "part": _DENIED + " AND CAST(a.{column} AS VARCHAR) = {level} LIMIT 20",
    "place": _PARTS,
    "through": _PARTS,
    "ratio": _DENIED,
    "form": 'SELECT reading, value, se FROM readings WHERE run = {run} AND "group" = {group}',
}
"""Kind of finding -> a query that lists the files or the numbers that the next step is about."""
_RANGE = re.compile(r"^(up to|above|fifth|months|\d{4} months) ")


def command(finding: Mapping[str, Any], run: str) -> str:
    """The command that lists what the next step is about; empty where there is none.

    Args:
        finding: kind, group, attribute and part.
        run: its run.
    """
    query = _QUERIES.get(finding["kind"], "")
    column, _, level = finding["part"].partition(": ")
    if not query or (finding["kind"] == "part" and (_RANGE.match(level) or not level)):
        return ""
    values = {"run": run, "group": finding["group"], "attribute": finding["protected_attribute"], "level": level}
    words = {name: "'" + value.replace("'", "''") + "'" for name, value in values.items()}
    identifier = '"' + column.replace('"', '""') + '"'
    escaped = re.sub(r'(["$`\\])', r"\\\1", query.format(**words, column=identifier))
    return f'evenhand sql "{escaped}"'


def sentence(finding: Mapping[str, Any]) -> str:
    """A finding in words, in points of approval."""
    return _SENTENCES[finding["kind"]](finding)


def of_100(share: float) -> str:
    """A share as a whole number of 100."""
    return f"{100 * share:.0f} of 100"


def points(value: float) -> str:
    """A number of percentage points without its sign."""
    number = round(100 * abs(value))
    return f"{number} point" if number == 1 else f"{number} points"


def _less_often(value: float) -> str:
    return f"{points(value)} {'less' if value > 0 else 'more'} often"


def of_copies(finding: Mapping[str, Any]) -> str:
    """Rows that are equal."""
    ending = "All were counted." if finding["kept"] else "Each application was counted once."
    return f"{{of}} rows hold copies: {{n}} are equal to an earlier row in every cell. {ending}"


def of_missing(finding: Mapping[str, Any]) -> str:
    """Files without a column."""
    sides = {finding["group"]: finding["shares"], finding["reference_group"]: finding["shares_reference"]}
    group, decision = max(((g, k) for g in sides for k in (0, 1)), key=lambda at: sides[at[0]][at[1]])
    words = ("denied", "approved")
    return (
        f"{{n}} files lack {finding['part']}: {of_100(sides[group][decision])} {words[decision]} {group} applicants, "
        f"{of_100(sides[group][1 - decision])} {words[1 - decision]} ones. With these, similar {finding['group']} "
        f"applicants were approved between {_less_often(finding['high'])} and {_less_often(finding['low'])}."
    )


def of_undecided(finding: Mapping[str, Any]) -> str:
    """Applications without a decision."""
    return (
        f"{of_100(finding['shares'][0])} {finding['group']} and {of_100(finding['shares_reference'][0])} "
        f"{finding['reference_group']} applications ended without a decision. If the excess counts as denied, similar "
        f"{finding['group']} applicants were approved {_less_often(finding['estimate'])}."
    )


def of_part(finding: Mapping[str, Any]) -> str:
    """A part of the group."""
    column, _, level = finding["part"].partition(": ")
    return (
        f"Where {column} is {level}, similar {finding['group']} applicants were approved "
        f"{_less_often(finding['value'])} ({_range(finding)}). In all applications together: "
        f"{_less_often(finding['estimate'])}."
    )


def _range(finding: Mapping[str, Any]) -> str:
    return f"{100 * finding['low']:.0f} to {100 * finding['high']:.0f}"


def of_place(finding: Mapping[str, Any]) -> str:
    """What goes through places."""
    gap, effect = round(100 * finding["value"]), round(100 * finding["estimate"])
    share = f"{gap} of the {points(finding['estimate'])}" if gap <= effect else f"More than the whole, {gap} points,"
    return (
        f"{share} go through where people live ({_range(finding)}): in one place, similar {finding['group']} "
        "applicants were approved "
        f"{_less_often(finding['remaining'])}."
    )


def of_through(finding: Mapping[str, Any]) -> str:
    """What goes through branches, officers or channels, or through the quarter of the application."""
    if finding["part"] == OF_TIME:
        return (
            f"{points(finding['value']).capitalize()} ({_range(finding)}) go with the quarter of the application: in "
            f"one quarter, similar {finding['group']} applicants were approved {_less_often(finding['remaining'])}."
        )
    return (
        f"{points(finding['value']).capitalize()} ({_range(finding)}) go through the branch, officer or channel: "
        f"without it, similar {finding['group']} applicants were approved "
        f"{_less_often(finding['estimate'] + finding['value'])}."
    )


def of_ratio(finding: Mapping[str, Any]) -> str:
    """Denied over expected."""
    return (
        f"{{n}} of {{of}} {finding['group']} applicants were denied, {finding['value']:.1f} times as many as by the "
        f"rule for {finding['reference_group']} applicants ({finding['low']:.1f} to {finding['high']:.1f})."
    )


def of_bands(finding: Mapping[str, Any]) -> str:
    """What differences inside bands account for."""
    return (
        f"Figures are given in bands; differences inside the bands may account for {points(finding['value'])} of the "
        f"{points(finding['estimate'])}."
    )


def of_form(finding: Mapping[str, Any]) -> str:
    """A second estimate that differs."""
    return (
        f"The result depends on the form of the rule: a second estimate, fitted where {finding['group']} applicants "
        f"are, gives {_less_often(finding['value'])}, this one {_less_often(finding['estimate'])}."
    )


def of_no_noise(finding: Mapping[str, Any]) -> str:
    """A lender who decides without chance."""
    return (
        f"The columns explain {of_100(finding['value'])} parts of the decisions on {finding['reference_group']} "
        "applicants: this lender decides by a rule, almost without chance."
    )


_SENTENCES = {
    "copies": of_copies,
    "missing": of_missing,
    "undecided": of_undecided,
    "part": of_part,
    "place": of_place,
    "through": of_through,
    "ratio": of_ratio,
    "bands": of_bands,
    "form": of_form,
    "no_noise": of_no_noise,
}


def parts_sentence(group: str, minimum_n: int, limit: float, n: int, detectable: float) -> str:
    """What was looked for in the parts of a group that is within, and how much harm would have been seen there.

    Args:
        group: its name.
        minimum_n: fewest members of a part.
        limit: of a part.
        n: members of a part of which the next figure is told.
        detectable: the smallest effect in such a part that four of five audits would find.
    """
    return (
        f"No part of at least {minimum_n} {group} applicants was shown to differ by more than {points(limit)}; "
        f"a part of {n} would have been seen at {points(detectable)}."
    )


ENOUGH_CHOICES = 40
"""Of 48: where the state of a group holds in fewer choices, it depends on them."""


def choices_sentence(group: str, choices: int, outside: int, within: int) -> str:
    """In how many choices of form, columns, files and estimator the whole group has which state."""
    counts = {"outside": outside, "inconclusive": choices - outside - within, "within": within}
    most = max(counts, key=lambda state: counts[state])
    rest = [f", {state} in {n}" for state, n in counts.items() if n and state != most]
    of = f"{counts[most]} of {choices} choices of form, columns, files and estimator"
    return f"{group}: {most} in {of}{''.join(rest)}."
