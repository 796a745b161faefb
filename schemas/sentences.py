"""Sentence patterns of the results, from sentences.yaml, and docs/glossary.md, which ``make docs`` writes.

Pages, terminal, ``report.json``, workbook, messages and alerts fill these patterns. Names: ``schemas.questions``.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import Any

import yaml

from schemas.questions import QUESTIONS, STATES


def sentences(part: str) -> Mapping[str, Any]:
    """The sentence patterns of one part; names in braces are filled in.

    Args:
        part: ``first_page``, ``question_pages``, ``findings``, ``messages``, ``league``, ``years``, ``lending`` or
            ``data_page``.
    """
    patterns: Mapping[str, Any] = _content("sentences.yaml")[part]
    return patterns


def filled(part: str, name: str, **words: object) -> str:
    """A sentence with its names filled in.

    Args:
        part: as in ``sentences``.
        name: of the pattern; dots lead into groups of patterns.
        words: what its names stand for.
    """
    pattern: Any = sentences(part)
    for key in name.split("."):
        pattern = pattern[key]
    text: str = pattern.format(**words)
    return text


@cache
def _content(name: str) -> Mapping[str, Any]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content: Mapping[str, Any] = yaml.load(text, safe)  # noqa: S506 - in C where there is one
    return content


def glossary() -> str:
    """docs/glossary.md: questions and states of this version, and every other term."""
    content = _content("glossary.yaml")
    questions = [
        (f"`{key}`", question.words, question.short, f"`{question.file}.html`", f"`{question.before}`")
        for key, question in QUESTIONS.items()
    ]
    states = [
        (f"`{key}`", state.words, state.meaning, f"`{state.before}`" if state.before else "")
        for key, state in STATES.items()
    ]
    lines = [
        *(
            "# Glossary",
            "",
            "Written by `make docs` from schemas/questions.py and schemas/glossary.yaml. Do not edit.",
            "",
        ),
        *(line for paragraph in content["introduction"] for line in (*wrap(paragraph, 120), "")),
        *_table("Questions", ("key", "question", "short name", "page", "before"), questions),
        *_table("States", ("key", "printed", "meaning", "before"), states),
        *_table("Terms", ("term", "meaning"), content["terms"].items()),
        *_table("Reasons of refusal", ("reason", "meaning"), content["reasons"].items()),
        *_table("Verdicts", ("verdict", "method", "meaning"), content["verdicts"]),
        *_table("Suffixes of measures", ("suffix", "meaning"), content["suffixes"].items()),
        *wrap(content["ends"], 120),
    ]
    return "\n".join(lines) + "\n"


def _table(title: str, header: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield from (f"## {title}", "", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}")
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


# --------------------------------------------------------------------------------------------------------------------
# Findings about the judged effect in words: what was found, and what to do next, by cause.
#
# A count of people stands as ``{n}`` or ``{of}`` until the disclosure pass fills it in as it is published.


INSIDE = ("time", "office")
"""Parts of a finding ``through`` that are about when people applied, and through which of few branches."""


def _pattern_of(finding: Mapping[str, Any]) -> str:
    """Kind of a finding, by which its sentence and its next step are found."""
    kind: str = finding["kind"]
    return f"{kind}_{finding['part']}" if kind == "through" and finding["part"] in INSIDE else kind


def next_step(finding: Mapping[str, Any]) -> str:
    """What to do next about a finding."""
    text: str = sentences("findings")["next"][_pattern_of(finding)]
    return text.format(part=finding["part"], group=finding["group"])


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
    pattern: str = sentences("findings")["kinds"][_pattern_of(finding)]
    words = {"group": finding["group"], "reference": finding.get("reference_group", "")}
    return pattern.format(**words | _PLACES[finding["kind"]](finding))


def of_100(share: float) -> str:
    """A share as a whole number of 100."""
    return _pattern("of_100", n=f"{100 * share:.0f}")


def points(value: float) -> str:
    """A number of percentage points without its sign."""
    number = round(100 * abs(value))
    singular, several = sentences("findings")["point"]
    return str(singular if number == 1 else several).format(n=number)


def _pattern(name: str, **words: object) -> str:
    return filled("findings", name, **words)


def _less_often(value: float) -> str:
    return _pattern("less" if value > 0 else "more", size=points(value))


def _range(finding: Mapping[str, Any]) -> str:
    return _pattern("range", low=f"{100 * finding['low']:.0f}", high=f"{100 * finding['high']:.0f}")


def of_copies(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Rows that are equal."""
    return {"ending": _pattern("kept" if finding["kept"] else "left_out")}


def of_missing(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Files without a column."""
    sides = {finding["group"]: finding["shares"], finding["reference_group"]: finding["shares_reference"]}
    group, decision = max(((g, k) for g in sides for k in (0, 1)), key=lambda at: sides[at[0]][at[1]])
    words = ("denied", "approved")
    return {
        **{"part": finding["part"], "of": group},
        **{"share": of_100(sides[group][decision]), "decision": words[decision]},
        **{"other_share": of_100(sides[group][1 - decision]), "other_decision": words[1 - decision]},
        **{"from_way": _less_often(finding["high"]), "to_way": _less_often(finding["low"])},
    }


def of_undecided(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Applications without a decision."""
    shares = {"share": of_100(finding["shares"][0]), "reference_share": of_100(finding["shares_reference"][0])}
    return shares | {"way": _less_often(finding["estimate"])}


def of_part(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A part of the group."""
    column, _, level = finding["part"].partition(": ")
    ways = {"value_way": _less_often(finding["value"]), "way": _less_often(finding["estimate"])}
    return {"column": column, "level": level, "range": _range(finding)} | ways


def of_place(finding: Mapping[str, Any]) -> dict[str, Any]:
    """What goes through places."""
    gap, effect = round(100 * finding["value"]), round(100 * finding["estimate"])
    name = "share_of_whole" if gap <= effect else "more_than_whole"
    share = _pattern(name, n=gap, whole=points(finding["estimate"]))
    return {"share": share, "range": _range(finding), "rest_way": _less_often(finding["remaining"])}


def of_through(finding: Mapping[str, Any]) -> dict[str, Any]:
    """What goes through branches, officers or channels, or through the quarter of the application."""
    rest = _less_often(finding["remaining"] if finding["part"] in INSIDE else finding["estimate"] + finding["value"])
    return {"size": points(finding["value"]).capitalize(), "range": _range(finding), "rest_way": rest}


def of_ratio(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Denied over expected."""
    return {name: finding[name] for name in ("value", "low", "high")}


def of_bands(finding: Mapping[str, Any]) -> dict[str, Any]:
    """What differences inside bands account for."""
    return {"size": points(finding["value"]), "whole": points(finding["estimate"])}


def of_form(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A second estimate that differs."""
    return {"value_way": _less_often(finding["value"]), "way": _less_often(finding["estimate"])}


def of_no_noise(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A lender who decides without chance."""
    return {"share": of_100(finding["value"])}


_PLACES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
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
"""Kind of finding -> what fills its sentence."""


def parts_sentence(group: str, minimum_n: int, limit: float, n: int, detectable: float) -> str:
    """What was looked for in the parts of a group that is within, and how much harm would have been seen there.

    Args:
        group: its name.
        minimum_n: fewest members of a part.
        limit: of a part.
        n: members of a part of which the next figure is told.
        detectable: the smallest effect in such a part that four of five audits would find.
    """
    numbers = {"limit": points(limit), "n": n, "detectable": points(detectable)}
    return _pattern("parts", least=minimum_n, group=group, **numbers)


ENOUGH_CHOICES = 40
"""Of 48: where the state of a group holds in fewer choices, it depends on them."""


def choices_sentence(group: str, choices: int, outside: int, within: int) -> str:
    """In how many choices of form, columns, files and estimator the whole group has which state."""
    counts = {"outside": outside, "inconclusive": choices - outside - within, "within": within}
    most = max(counts, key=lambda state: counts[state])
    rest = [f", {state} in {n}" for state, n in counts.items() if n and state != most]
    of = f"{counts[most]} of {choices} choices of form, columns, files and estimator"
    return f"{group}: {most} in {of}{''.join(rest)}."


if __name__ == "__main__":
    sys.stdout.write(glossary())
