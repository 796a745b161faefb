"""The first page as one drawing, to be shown where a page cannot be: headline, answers, figures, what to do next."""

from collections.abc import Iterator

from markupsafe import Markup

from schemas.terms import State
from tasks.reporting.chapters.decide.figures import forest
from tasks.reporting.chapters.decide.result import Decision, Line
from tasks.reporting.charts.element import svg
from tasks.reporting.charts.layout.shapes import LIGHT, WIDE, Colour
from tasks.reporting.charts.lettering import lines

WIDTH, MARGIN = 940, 32
SMALL, TEXT, LARGE = 13.0, 14.5, 23.0
"""Sizes of letters."""
STATE_AT, SENTENCE_AT, LIST_AT = 352, 490, 640
"""Where the columns begin."""
LEADING, GAP = 19, 12
"""From one line of text to the next, and between a column and the next."""
COLOURS: dict[State, Colour] = {State.BREACH: "breach", State.INSUFFICIENT_EVIDENCE: "few", State.WITHIN: "ok"}
"""Words of states have them; all other states are grey."""


def picture(decision: Decision, title: str) -> bytes:
    """The content of an SVG that needs no other file, and says what the page says first as its title.

    Args:
        decision: the first page.
        title: of the audit.
    """
    head, y = _head(decision, title)
    rows, y = _answers(decision, y)
    chart = forest(decision.figures)
    advice, end = _advice(decision, y)
    figures = _text(decision.figures.title, MARGIN, y, TEXT, bold=True)
    high = max(y + 40 + chart.draw(WIDE).height, end)
    texts = Markup("\n").join([*head, *rows, figures, *advice])
    whole = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h:.0f}" width="{w}" height="{h:.0f}" role="img">\n'
        '<title>{title}: {said}</title>\n<rect width="{w}" height="{h:.0f}" fill="{paper}"/>\n'
        '<g font-family="Arial, Helvetica, sans-serif">\n{texts}\n</g>\n'
        '<g transform="translate({margin} {at:.0f})">{chart}</g>\n</svg>\n'
    ).format(
        w=WIDTH, h=high, title=title, said=decision.headline.words, paper=LIGHT["paper"],
        texts=texts, margin=MARGIN, at=y + 12, chart=svg(chart, "figures"),
    )  # fmt: skip
    return whole.encode()


def _head(decision: Decision, title: str) -> tuple[list[Markup], float]:
    said = lines(decision.headline.words, WIDTH - 2 * MARGIN, LARGE, most=3, bold=True)
    texts = [_text(line, MARGIN, 72 + 30 * i, LARGE, bold=True) for i, line in enumerate(said)]
    return [_text(title, MARGIN, 40, SMALL, "soft"), *texts], 72 + 30 * len(said) + 14


def _answers(decision: Decision, y: float) -> tuple[list[Markup], float]:
    """A row a question: what is asked, its state, and a sentence of at most two lines."""
    out: list[Markup] = []
    for row in decision.questions:
        question = lines(row.question, STATE_AT - MARGIN - GAP, TEXT, most=2, bold=True)
        sentence = lines(row.sentence, WIDTH - MARGIN - SENTENCE_AT, TEXT, most=2)
        out += [
            *(_text(line, MARGIN, y + LEADING * i, TEXT, bold=True) for i, line in enumerate(question)),
            _text(row.state_words, STATE_AT, y, TEXT, COLOURS.get(row.state, "soft"), bold=True),
            *(_text(line, SENTENCE_AT, y + LEADING * i, TEXT) for i, line in enumerate(sentence)),
        ]
        y += LEADING * max(len(question), len(sentence)) + 10
        line = f'<path d="M{MARGIN} {y - 19:.0f}H{WIDTH - MARGIN}" stroke="{LIGHT["line"]}"/>'
        out.append(Markup(line))  # noqa: S704 - numbers and a colour of ours
        y += 8
    return out, y + 12


def _advice(decision: Decision, y: float) -> tuple[list[Markup], float]:
    """What the page says beside its figures, and where that ends."""
    out: list[Markup] = []
    for title, said in (("Do next", decision.next), ("What this cannot tell", decision.cannot)):
        out.append(_text(title, LIST_AT, y, TEXT, bold=True))
        for text in _wrapped(said):
            y += LEADING
            out.append(_text(text, LIST_AT, y, SMALL))
        y += 2 * LEADING
    return out, y


def _wrapped(said: tuple[Line, ...]) -> Iterator[str]:
    for each in said:
        yield from lines(each.words, WIDTH - MARGIN - LIST_AT, SMALL, most=4)


def _text(text: str, x: float, y: float, size: float, colour: Colour = "ink", *, bold: bool = False) -> Markup:
    weight = Markup(' font-weight="600"') if bold else Markup()
    return Markup('<text x="{}" y="{:.0f}" font-size="{:g}" fill="{}"{}>{}</text>').format(
        x, y, size, LIGHT[colour], weight, text
    )
