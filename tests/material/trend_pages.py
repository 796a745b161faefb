"""The page of a trend as bytes, of years that a test made."""

from collections.abc import Mapping, Sequence

from tasks.reporting.text import Section
from tasks.reporting.trend_pages import paged, span_of, trend_section
from tasks.reporting.trends import YearResult


def trend_page(
    title: str,
    years: Sequence[YearResult],
    references: Mapping[str, str],
    hmda: bool,
    restated: Sequence[Section],
    monitored: Sequence[Section] = (),
) -> bytes:
    """Arguments as of ``trend_section``."""
    return paged(trend_section(title, years, references, hmda, restated, monitored), span_of(years))
