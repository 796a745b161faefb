"""Charts of a page: their ids."""

from tasks.reporting.charts.vega import with_unique_ids

_SVG = '<g clip-path="url(#clip{0})"/><g clip-path="url(#clip{1})"/><clipPath id="clip{0}"/><clipPath id="clip{1}"/>'


def test_ids_do_not_depend_on_what_was_drawn_before() -> None:
    first, later = (with_unique_ids(_SVG.format(*of), "gap") for of in ((1, 2), (9, 10)))
    assert first == later
    assert first.count("gap-1") == first.count("gap-2") == 2


def test_ids_of_two_charts_differ() -> None:
    one, other = (with_unique_ids(_SVG.format(1, 2), name) for name in ("gap", "cost"))
    assert 'id="gap-1"' in one
    assert 'id="cost-1"' in other
    assert 'id="gap-1"' not in other
