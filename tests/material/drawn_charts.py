"""Charts that several tests draw: figures of the report's worked examples, and cases that break layouts."""

import math
import re
from xml.etree import ElementTree

from tasks.reporting.charts.layout import element, style
from tasks.reporting.charts.matrix import Cell, Matrix, Row
from tasks.reporting.charts.rows import Forest, Steps
from tasks.reporting.charts.trend import Point, Series, Trend
from tasks.reporting.charts.values import OF_100, PERCENT, POINTS, RATIO, WITHHELD, Mark, State, Unit

HOSTILE = "<script>alert('x')</script> & \"quoted\" ]]> --> \x00\u202e"
HEBREW = "קבוצת המבקשים מן העיר העתיקה (אזור 12)"
ARABIC = "مجموعة المتقدمين"
LONG = "Applicants of Two or More Races Including Native Hawaiian or Other Pacific Islanders"
UNBROKEN = "X" * 80

BREACH, FEW, WITHIN = "outside", "inconclusive", "within"

DECIDE = Forest(
    title="Black compared with white applicants, points of approval",
    unit=POINTS,
    rows=(
        Mark(label="All applicants", detail="as decided", value=-23.3, low=-30.0, high=-16.6, n=197, state=BREACH),
        Mark(label="Adjusted", detail="18 columns on file", value=-13.8, low=-20.2, high=-7.4, n=197, state=BREACH),
        Mark(label="Nearest 15", detail="similar white applicants", value=-18.5, low=-25.4, high=-11.6, n=197),
    ),
    limit=-5,
)
OWN_LIMITS = Forest(
    title="Black compared with white applicants: each comparison has its own limit",
    unit=POINTS,
    rows=(
        Mark(label="All applicants", value=-23.3, low=-33.0, high=-12.6, n=197, limit=-18.2, state=FEW),
        Mark(
            label="Adjusted",
            detail="18 columns on file",
            value=-13.3,
            low=-20.2,
            high=-6.7,
            n=197,
            limit=-2,
            state=BREACH,
        ),
        Mark(label="Nearest 15", value=-18.5, low=-25.4, high=-11.6, n=197, limit=-2, state=BREACH),
        Mark(label="By an assumed graph", value=None, limit=-5, state="not_run"),
    ),
)
RATES = Forest(
    title="Approved of 100 applicants, by group",
    unit=OF_100,
    head="Group",
    rows=(
        Mark(label="white", value=90.8, low=89.4, high=92.1, n=1681, reference=True),
        Mark(label="Hispanic", value=76.6, low=67.9, high=83.5, n=111, state=FEW),
        Mark(label="Black", value=67.5, low=60.7, high=73.7, n=197, state=BREACH),
        Mark(label="Asian", value=WITHHELD, n=WITHHELD, state="inconclusive (withheld)"),
        Mark(label="American Indian", value=None, n=3, note="Fewer than 30 applicants: not compared.", state="not_run"),
    ),
)
LADDER = Steps(
    title="What is left of the difference, step by step: Black compared with white applicants",
    unit=POINTS,
    rows=(
        Mark(label="Raw", value=-23.3, low=-30.0, high=-16.6, n=197, state=BREACH),
        Mark(
            label="+ terms", detail="loan, value ratio, term", value=-20.9, low=-27.5, high=-14.2, n=197, state=BREACH
        ),
        Mark(
            label="+ finances", detail="income, expense ratios", value=-18.6, low=-25.1, high=-12.0, n=197, state=BREACH
        ),
        Mark(
            label="+ history",
            detail="credit and mortgage history",
            value=-13.8,
            low=-20.2,
            high=-7.4,
            n=197,
            state=BREACH,
        ),
        Mark(label="+ place", value=-5.6, low=-12.1, high=0.9, n=190, state=FEW),
        Mark(label="Nearest 15", value=None, note="Not run: fewer than 15 neighbours.", state="not_run"),
    ),
    limit=-5,
)
ROUTES = Steps(
    title="From denial to approval: Black applicants",
    unit=Unit("denied applicants", low=0),
    bars=True,
    rows=(
        Mark(label="Denied", value=64),
        Mark(label="With a way to approval", value=51),
        Mark(label="Within reach", detail="at most 3 changes", value=22),
        Mark(label="By income alone", value=WITHHELD, note="Fewer than 10 people."),
    ),
)
SENSITIVITY = Steps(
    title="How strong a factor not on file must be",
    unit=PERCENT,
    bars=True,
    head="Factor",
    rows=(
        Mark(label="Public record", detail="of what is left of approval", value=3.5),
        Mark(label="Public record", detail="of what is left of race", value=1.0),
        Mark(label="Credit history", detail="of what is left of approval", value=2.2),
    ),
    limit=12.4,
    limit_name="needed to remove the adjusted gap:",
    beyond="strong enough",
    side="at_most",
)
MANY = Forest(
    title="Forty groups",
    unit=POINTS,
    head="Group",
    rows=tuple(
        Mark(
            label=[f"Group {i}", HOSTILE, HEBREW, LONG, UNBROKEN, ARABIC, "漢字の名前" * 9][i % 7] + f" {i}",
            value=[-i / 2, 3.3 + i, -60.0, 0.04][i % 4],
            low=[-i / 2 - 4, -math.inf, -99.0, -0.9][i % 4],
            high=[-i / 2 + 3, math.inf, -21.0, 0.98][i % 4],
            n=i * i * 97,
            state=[BREACH, FEW, WITHIN, "no_limit", ""][i % 5],
            note="A note of the table." if i % 11 == 0 else "",
        )
        for i in range(40)
    ),
    limit=-5,
)
YEARS = Trend(
    title="Approved of 100 applicants by year",
    unit=OF_100,
    series=(
        Series(
            label="white",
            reference=True,
            points=tuple(
                Point(year=2016 + i, value=v, low=v - 1.2, high=v + 1.1, n=4000 + i)
                for i, v in enumerate([88.1, 88.4, 89.0, 91.2, 90.8, 91.5, 90.1, 90.6])
            ),
        ),
        Series(
            label="Black",
            points=tuple(
                Point(year=2016 + i, value=v, low=v - 5.2, high=v + 4.9, n=197 + i, state=BREACH if v < 72 else FEW)
                for i, v in enumerate([68.1, 66.4, 70.0, 75.2, 74.8, 73.5, 76.1, 70.6])
            ),
        ),
        Series(
            label="Hispanic",
            points=(
                Point(year=2016, value=78.0, low=71.0, high=84.0, n=110, state=FEW),
                Point(year=2017, value=77.0, low=70.0, high=83.0, n=104, state=FEW),
                Point(year=2018, value=WITHHELD, n=WITHHELD),
                Point(year=2020, value=81.0, low=74.0, high=87.0, n=98, state=FEW),
                Point(year=2021, value=80.0),
                Point(year=2022, value=85.0, low=79.0, high=90.0, n=121, state=WITHIN),
                Point(year=2023, value=86.0, low=80.0, high=91.0, n=130, state=WITHIN),
            ),
        ),
    ),
    breaks=((2018, "new HMDA layout"),),
    limit=72.6,
)
ONE_LINE = Trend(
    title="Ratio of approval rates, Black to white",
    unit=RATIO,
    series=(
        Series(
            label="Black",
            points=tuple(
                Point(year=year, value=value, low=value - 0.08, high=value + 0.08, n=197, state=state)
                for year, value, state in (
                    (2019, 0.74, FEW),
                    (2020, 0.71, BREACH),
                    (2021, 0.78, FEW),
                    (2022, 0.85, FEW),
                    (2023, 0.92, WITHIN),
                )
            ),
        ),
    ),
    limit=0.8,
)
STAGES = {
    "ok": State("cached", "tick", "ok"),
    "stale": State("stale", "question", "few"),
    "failed": State("failed", "cross", "breach"),
    "missing": State("missing", "ring", "soft"),
}
STAGE_NAMES = (
    "ingest",
    "preprocess",
    "score",
    "connect",
    "generate",
    "adjust",
    "mediate",
    "detect",
    "measure",
    "publish",
    "report",
)
STANDING = Matrix(
    title="Stages by year",
    head="Year",
    columns=STAGE_NAMES,
    rows=tuple(
        Row(label=str(year), cells=tuple(Cell(state=s) for s in states))
        for year, states in (
            (2021, ["ok"] * 11),
            (2022, ["ok"] * 7 + ["stale"] * 4),
            (2023, ["ok"] * 4 + ["failed"] + ["missing"] * 6),
        )
    ),
    states=STAGES,
)
METHODS = Matrix(
    title="What each method says of each group",
    columns=("adjusted", "cst", "gcfn", "fgce", "raguel"),
    unit=POINTS,
    rows=(
        Row(
            label="Black",
            cells=(
                Cell(value=-13.8, low=-20.2, high=-7.4, n=197, state=BREACH),
                Cell(value=-18.5, low=-25.4, high=-11.6, n=197, state=BREACH),
                Cell(value=-3.3, low=-9.0, high=2.0, n=197, state=FEW),
                Cell(state="not_run"),
                Cell(value=WITHHELD, state="inconclusive (withheld)"),
            ),
        ),
        Row(
            label="Hispanic",
            cells=(
                Cell(value=-10.6, low=-18.0, high=-3.2, n=110, state=FEW),
                Cell(value=-14.1, low=-22.0, high=-6.3, n=110, state=BREACH),
                Cell(value=0.2, low=-0.8, high=1.1, n=110, state=WITHIN),
                Cell(state="no_limit", value=1.2, low=-4.0, high=6.0),
                None,
            ),
        ),
        Row(label=HEBREW, cells=(None, Cell(state="information"), Cell(value=12.0), None, None)),
        Row(label=LONG, cells=(Cell(state=WITHIN), None, None, None, None)),
        Row(label="white", reference=True, cells=(None,) * 5),
    ),
)
OUTCOMES = Matrix(
    title="Decisions of 100 applicants, by group",
    columns=("approved", "denied", "withdrawn by the applicant", "closed as incomplete"),
    unit=OF_100,
    rows=(
        Row(label="white", reference=True, cells=tuple(Cell(value=v) for v in (78.0, 10.0, 8.0, 4.0))),
        Row(label="Black", cells=tuple(Cell(value=v) for v in (61.0, 22.0, 9.0, 8.0))),
        Row(label="Asian", cells=(*(Cell(value=v) for v in (80.0, 9.0)), Cell(value=WITHHELD), Cell(value=WITHHELD))),
    ),
)
CHARTS = {
    name.lower().replace("_", "-"): chart
    for name, chart in dict(globals()).items()
    if isinstance(chart, Forest | Trend | Matrix)
}
"""Name -> chart."""


def page(*, scheme: str = "light", ground: str = "", only: str | None = None) -> str:
    """A page of all charts, or of one.

    Args:
        scheme: ``color-scheme`` of the page.
        ground: its colour; empty: that of the scheme.
        only: name of the one chart.
    """
    charts = {only: CHARTS[only]} if only else CHARTS
    ground = f"background:{ground};" if ground else ""
    parts = "".join(f"<section><h2>{name}</h2>{element(chart, name)}</section>" for name, chart in charts.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Drawings</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>:root{{color-scheme:{scheme}}}body{{margin:0;{ground}font:15px/1.45 system-ui,Arial,sans-serif}}"
        "main{max-width:1180px;margin:0 auto;padding:0 16px;display:grid;gap:20px 36px;"
        "grid-template-columns:repeat(2,minmax(0,1fr))}@media(max-width:800px){main{display:block}}"
        f"</style><style>{style()}</style></head><body><main><h1>Drawings</h1>{parts}</main></body></html>"
    )


def tree(chart, prefix="p"):
    """The HTML of a chart as XML."""
    return ElementTree.fromstring(element(chart, prefix))


def texts(node):
    """All text of an element."""
    return " ".join(node.itertext())


def points(d):
    """Points of a path; of the half of a circle its end and both sides."""
    x = y = 0.0
    for command, numbers in re.findall(r"([MLHVAaZ])([^MLHVAaZ]*)", d):
        n = [float(part) for part in numbers.split()]
        match command:
            case "M" | "L":
                x, y = n
            case "H":
                (x,) = n
            case "V":
                (y,) = n
            case "A":
                x, y = n[5:]
            case "a":
                yield x + n[5] / 2, y - n[0]
                yield x + n[5] / 2, y + n[0]
                x, y = x + n[5], y + n[6]
        assert math.isfinite(x)
        assert math.isfinite(y)
        yield x, y
