"""Sentences of a league: what its table is for, what is expected to be false, what is pooled, and in which order."""

from typing import Final

from tasks.metrics.league.algorithm.pooling import FEWEST
from tasks.metrics.league.asked import Subject
from tasks.metrics.league.rows import Standings
from tasks.reporting.charts.numbers import number
from tasks.reporting.declared import form_of, names
from tasks.reporting.material import capital
from tasks.reporting.numbers import SPACE, written

NO_RANKING: Final = (
    "Rows are in the order of the lower end of the pooled interval. That is no ranking of {noun} whose intervals "
    "overlap."
)
LIMITS: Final = (
    "A state is that of the partition's own verdict, by its own limit and interval. It never follows from q, from a "
    "pooled estimate or from the place in the table.",
    "Every partition is an audit of its own. Partitions differ in whom they lend to, in products and in what they "
    "record; an adjusted difference leaves out what no column holds.",
    "Pooled intervals cover in the mean over partitions, and less often for one that lies far from all others.",
    "A partition that is in no table had too few people, has no run yet, or is withheld. None of these is a pass.",
)


def noun_of(column: str) -> str:
    """What the values of a column are called."""
    return "lenders" if "lender" in column.lower() or column.lower() == "lei" else "partitions"


def first_statement(noun: str) -> str:
    """What is said before all else."""
    return (
        f"Benjamini-Hochberg over {noun} is for screening and is no verdict on its own: it says where to look first, "
        "and the verdict of each stands in its own report."
    )


def titled(subject: Subject) -> str:
    """A measure of a group as a heading."""
    against = f", against {subject.reference_group}" if subject.reference_group else ""
    whose = f" ({subject.decision_maker})" if subject.decision_maker else ""
    said = capital(names(subject.measure)[0])
    size = f", {subject.parameters}" if subject.parameters != "{}" else ""
    return f"{said}{size}{whose}, {subject.protected_attribute}: {subject.group}{against}"


def value_words(subject: Subject, value: float) -> str:
    """A value of the measure in its unit."""
    return written(value, names(subject.measure)[1], form_of(subject.measure))


def answer(subject: Subject, table: Standings, noun: str) -> str:
    """What the table of one measure and group says, in a sentence."""
    known = [line for line in table.lines if not line.figure.withheld]
    breaches = sum(line.figure.state == "breach" for line in known)
    if not table.tested:
        return f"{titled(subject)}: {len(known)} {noun} with a figure; none is held against a limit."
    n = len(table.screened)
    false = f", of which {_few(table.false)} are expected to be false" if n else ""
    return (
        f"{titled(subject)}: {n or 'none'} of {table.tested} {noun} screened{false}; {breaches or 'none'} outside the "
        "limit by its own verdict."
    )


def expected(table: Standings, noun: str) -> str:
    """How many false ones are expected, over the table."""
    if not table.tested:
        return f"No limit is set, so that no {noun.removesuffix('s')} is screened."
    return (
        f"Expected false ones: of {table.tested} tests at 5{SPACE}%, {number(table.by_chance, 1)} would be called by "
        f"chance if all {noun} just kept the limit; of the {len(table.screened)} screened, "
        f"{_few(table.false)} (false discovery rate of 5{SPACE}% among independent tests; q by Benjamini and "
        "Yekutieli holds under any dependence)."
    )


def pooled_words(table: Standings, noun: str) -> str:
    """The model of all partitions, in a sentence."""
    known = [line for line in table.lines if line.pooled is not None]
    if len(known) < FEWEST:
        return f"Of fewer than {FEWEST} {noun} with an interval nothing is pooled: estimates stand as they are."
    spread, way = table.spread, {"reml": "restricted maximum likelihood", "paule_mandel": "Paule and Mandel"}
    scale = "the logarithm of the ratio" if table.logarithmic else "the difference"
    return (
        f"Partial pooling: normal model of {scale}, variance between {noun} by {way.get(spread.way, spread.way)}, "
        f"standard deviation {spread.tau2**0.5:.3g}; intervals after Morris (1983) count that it is estimated."
    )


def _few(value: float) -> str:
    return "none" if not value else f"at most {value:.1f}" if value >= 0.1 else "fewer than 0.1"
