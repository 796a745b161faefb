"""The page of a league: what it is for, what was found, a caterpillar and a table of each measure and group.

Static like the report: it asks the network for nothing and needs no script. What does not fit is in the JSON file that
the command writes beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tasks.metrics.league.asked import Subject
from tasks.metrics.league.census import Census
from tasks.metrics.league.published import Hidden
from tasks.metrics.league.rows import Entrant, Standings
from tasks.reporting.league import charts, tables, words
from tasks.reporting.material import RESTRICTED, anchor
from tasks.reporting.pages.frame import Frame, page
from tasks.reporting.section import Notice, Section

CELLS: Final = 20_000
"""Of all tables of the page."""
MARKS: Final = 2_000
"""Of all its charts."""
_NOTE = "Aggregates only, as the runs have published them; no applicant's record is in this file."


@dataclass(frozen=True)
class Content:
    """What the page shows."""

    title: str
    column: str
    restricted: bool
    """Whether a run withholds nothing."""
    census: Census
    entrants: Mapping[str, tuple[Entrant, str]]
    """Value -> partition, and the state of its run."""
    standings: Mapping[Subject, Standings]
    hidden: Mapping[str, Hidden]
    links: Mapping[str, str]
    """Run -> address of its report, from the page."""


def league_page(content: Content) -> bytes:
    """The page."""
    noun = words.noun_of(content.column)
    first = Notice("For screening", words.first_statement(noun))
    found = tuple(words.answer(subject, table, noun) for subject, table in content.standings.items())
    parts = [_part(subject, content, noun) for subject in content.standings]
    every = Section(
        f"The {noun}",
        "partitions",
        (f"By `{content.column}`: {content.census.words}", *_withheld(content, noun)),
        tables=(tables.partitions(content.entrants, noun, content.links, _rows(content)),),
    )
    cannot = Section("What this page cannot tell", "limits", points=words.LIMITS)
    title = f"League of {noun}"
    whole = Section(title, "league", (), found, (first,), parts=(*parts, every, cannot))
    frame = Frame(content.title, note=_NOTE, restricted=RESTRICTED if content.restricted else "")
    return page("page.html.j2", "league.html", section=whole, frame=frame)


def _rows(content: Content) -> int:
    """Rows of a table that fit: all tables together hold ``CELLS``."""
    return max(10, CELLS // (14 * max(len(content.standings), 1)))


def _withheld(content: Content, noun: str) -> list[str]:
    """What is withheld beyond what the runs withhold, without saying for whom."""
    out = []
    for attribute, each in content.hidden.items():
        if each.partitions:
            n = len(each.partitions)
            out.append(
                f"Figures by {attribute} of {n} {noun if n > 1 else noun.removesuffix('s')} are withheld here, since "
                "they would tell counts of few people elsewhere; their own reports have them, and are not to be "
                "published beside that of all rows."
            )
        if each.everybody:
            why = "counts do not add up to those of all rows" if each.unequal else "too much would follow from them"
            out.append(
                f"Figures of all rows by {attribute} are withheld here: {why}. Their own report is not to be published "
                "beside those of partitions."
            )
    return out


def _part(subject: Subject, content: Content, noun: str) -> Section:
    """One measure of one group."""
    table = content.standings[subject]
    return Section(
        words.titled(subject),
        anchor(*subject[2:8]),
        (
            words.expected(table, noun),
            words.pooled_words(table, noun),
            words.NO_RANKING.format(noun=noun),
        ),
        figures=charts.pooled_intervals(subject, table, max(charts.LABELLED, MARKS // len(content.standings))),
        tables=(tables.standing(subject, table, noun, content.links, _rows(content)),),
    )
