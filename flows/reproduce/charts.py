"""One page with what is drawn of the papers' figures, each with its numbers as a table; no script, no other file."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from tasks.reporting.charts.curves import Curve, Curves
from tasks.reporting.charts.element import element, style
from tasks.reporting.charts.numbers import Unit

_PAGE = Markup("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Figures of the papers, drawn from our results</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 Arial, Helvetica, sans-serif; max-width: 40rem; margin: 0 auto; padding: 1rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .1rem .6rem; text-align: left; }}
.numbers {{ overflow-x: auto; }}
{style}
</style>
</head>
<body>
<main>
<h1>Figures of the papers, drawn from our results</h1>
{sections}
</main>
</body>
</html>
""")


def charts_page(drawings: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> str:
    """The page.

    Args:
        drawings: By paper and data set, as plain values (``Drawing.plain``).
    """
    sections = Markup("\n").join(_sections(drawings))
    return str(_PAGE.format(style=Markup(style()), sections=sections))  # noqa: S704 - our own style sheet


def _sections(drawings: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> Iterator[Markup]:
    for (paper, dataset), several in drawings.items():
        for number, said in enumerate(several):
            heading = f"{paper.upper()}, {said['figure']}, {dataset}: {said['title']}"
            chart = element(_chart(said), f"{paper}-{dataset}-{number}")
            yield Markup("<section>\n<h2>{}</h2>\n{}\n</section>").format(heading, chart)


def _chart(said: Mapping[str, Any]) -> Curves:
    curves = tuple(
        Curve(
            each["name"],
            tuple((x, float("nan") if y is None else y) for x, y in zip(each["x"], each["y"], strict=True)),
        )
        for each in said["curves"]
    )
    return Curves(said["title"], Unit(said["x"]), Unit(said["y"]), curves)
