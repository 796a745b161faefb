"""The evidence page of a method: its question, then a section for each block that the run has any row of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from schemas.tables.verdicts import QUESTIONS
from tasks.pipeline.registry import OUTCOMES_METHOD
from tasks.reporting.declared import PAGES, Block, Declared, declared
from tasks.reporting.evidence import figures, tables
from tasks.reporting.evidence.budget import MOST_CHARTS, Line, Whole, rows_allowed
from tasks.reporting.evidence.groups import ByGroup
from tasks.reporting.evidence.settings import BySetting, BySettingOfGroup
from tasks.reporting.evidence.words import method_found
from tasks.reporting.material import Material, View, anchor
from tasks.reporting.section import Figure, Link, Section

_QUESTIONS = {page: QUESTIONS[theory] for theory, page in PAGES.items() if page}
"""Page of a question -> its title."""


@dataclass(frozen=True)
class Made:
    """A table of a block, and the chart of the rows that are printed of it."""

    whole: Whole
    draw: Callable[[Sequence[Line]], Figure | None] = lambda _: None


def evidence(material: Material, name: str) -> Section:
    """Every table and chart of a method, or of ``outcomes``; a table beyond its budget says where all of it is."""
    said = declared(name)
    views = tuple(view for maker in reversed(material.makers(name)) for view in material.views(name, maker))
    made = [(block, tuple(_made(block, said, views, material))) for block in said.evidence]
    most, room = rows_allowed([each.whole for _, mine in made for each in mine]), MOST_CHARTS
    parts = []
    for block, mine in made:
        drawn = (each.draw(each.whole.kept(most)) for each in mine)
        shown = tuple(islice((figure for figure in drawn if figure is not None), room))
        room -= len(shown)
        if mine:
            whole = tuple(each.whole.view(most) for each in mine)
            parts.append(Section(block.title, anchor(block.title), (block.says,), figures=shown, tables=whole))
    return Section(said.title, name, _words(material, name, said, parts), parts=tuple(parts), links=_links(name, said))


def _words(material: Material, name: str, said: Declared, parts: Sequence[Section]) -> tuple[str, ...]:
    """The question, in two sentences what the method does, and how much of it the run has."""
    rows = sum(m.method == name for m in material.measures)
    told = (method_found(material.settings.run, name, rows),) if rows else ()
    return (said.question, *said.method[:2], *(told if parts else ("Nothing of this could be computed in this run.",)))


def _links(name: str, said: Declared) -> tuple[Link, ...]:
    how = "How it works, and what it cannot tell" if name != OUTCOMES_METHOD else "What rates are, and cannot tell"
    return Link(_QUESTIONS[said.page], f"pages/{said.page}.html"), Link(how, f"method.html#{name}")


def _made(block: Block, said: Declared, views: Sequence[View], material: Material) -> Iterator[Made]:
    """The tables of a block: one for each decision maker and protected attribute that has any row of it."""
    if block.table:
        yield from _of_table(block, said, material)
        return
    run, level = material.settings.run, material.settings.bootstrap.level
    for view in views:
        found, about = _KINDS[bool(block.along), bool(block.measure)](block, said, view), _about(material, view)
        whole = found.table(f"{block.title}, {about}", run)
        if whole is not None:
            draw = partial(figures.drawn, found, title=about, level=level)
            yield Made(whole, draw) if block.chart != "none" else Made(whole)


Found = ByGroup | BySetting | BySettingOfGroup
_KINDS: Mapping[tuple[bool, bool], type[Found]] = {
    (False, False): ByGroup,
    (True, True): BySetting,
    (True, False): BySettingOfGroup,
}
"""Whether a block runs along settings, and is of one measure -> what finds its rows."""


def _of_table(block: Block, said: Declared, material: Material) -> Iterator[Made]:
    name, rows = tables.rows_of(block, material)
    for (maker, attribute), mine in tables.scopes(rows).items():
        title = ", ".join(part for part in (block.title, _whom(material, maker, attribute)) if part)
        whole = tables.table(block, said, material, title, mine, name)
        if whole is not None:
            yield Made(whole)


def _about(material: Material, view: View) -> str:
    return _whom(material, view.maker, view.attribute)


def _whom(material: Material, maker: str, attribute: str) -> str:
    """Whom a table is about."""
    parts = (f"by {attribute}" if attribute else "", material.whose(maker) if maker else "")
    return ": ".join(part for part in parts if part)
