"""Steps: what is left of a difference line by line (the ladder), or numbers that shrink along a way (routes)."""

from dataclasses import dataclass, replace

from tasks.reporting.charts.forest import Forest
from tasks.reporting.charts.layout.shapes import Drawing, Sheet
from tasks.reporting.charts.marks import Mark


@dataclass(frozen=True, kw_only=True)
class Steps(Forest):
    """Rows in an order that means something.

    A ladder joins each mark with the next. With ``bars``, values are bars from 0: counts and other numbers that have
    no interval.
    """

    head: str = "Step"
    bars: bool = False

    def _note(self, mark: Mark) -> str:
        """A bar stands without an interval."""
        return mark.note if self.bars and isinstance(mark.value, int | float) else super()._note(mark)

    def draw(self, sheet: Sheet) -> Drawing:
        """Rows under each other on one axis."""
        return replace(self._rows(), joined=not self.bars, bars=self.bars).draw(sheet)
