"""Texts of a drawing in lines that fit, each isolated from the direction of the others."""

from tasks.reporting.charts.layout.shapes import Anchor, Colour, Sheet, Text
from tasks.reporting.charts.lettering import clean, isolated, lines


def text_lines(
    text: str,
    x: float,
    baseline: float,
    room: float,
    sheet: Sheet,
    most: int,
    colour: Colour,
    anchor: Anchor = "start",
    *,
    bold: bool = False,
) -> list[Text]:
    """A text in lines under each other; the last one says all of it in its title where something is left out.

    Args:
        text: any text.
        x: of its anchor.
        baseline: of the first line.
        room: width of a line.
        sheet: whose letters and leading it has.
        most: lines.
        colour: of the letters.
        anchor: which end of a line lies at ``x``.
        bold: whether letters are bold.
    """
    whole = clean(text)
    found = lines(whole, room, sheet.size, most=most, bold=bold)
    left_out = "".join(found).replace(" ", "") != whole.replace(" ", "")
    return [
        Text(x, baseline + i * sheet.leading, isolated(line, whole), colour, bold, anchor, whole * left_out)
        for i, line in enumerate(found)
    ]
