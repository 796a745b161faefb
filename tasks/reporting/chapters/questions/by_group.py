"""The table of a page: every group with number, value, interval, state and adjusted p."""

from collections.abc import Callable

from tasks.reporting.chapters.decide.facts import Key
from tasks.reporting.chapters.questions.declaration import Column, Question, declaration
from tasks.reporting.chapters.questions.marks import (
    SCALES,
    adjusted_p_cell,
    count_cell,
    count_of,
    interval_cell,
    judged_mark,
    largest,
    measure_mark,
    state_cell,
    value_cell,
)
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.chapters.questions.room import Room
from tasks.reporting.charts.marks import Mark
from tasks.reporting.section import Cell, TableView

DASH = Cell("–", "none")
Make = Callable[[Key], Cell]


def by_group(matter: Matter, question: Question, room: Room) -> TableView | None:
    """Groups in the order of all pages, reference groups before theirs; None without groups.

    Of more rows than there is room for those with the largest values are shown, and those outside a limit before them.
    A column in which nothing stands is left out.
    """
    keys = matter.shown(question)
    if not keys:
        return None
    marks = {key: judged_mark(matter, question, key) for key in keys}
    columns = [each for each in question.columns if matter.has(each.series)]
    references = {each[0] for each in keys} if any(each.references for each in columns) else set()
    shown = largest(marks.items(), room.table - len(references), SCALES[question.scale])
    wanted = matter.with_references(shown) if references else shown
    whole = len(keys) + len(references) if len(shown) < len(keys) else 0
    words, made = declaration().table, _cells(matter, question, marks, columns)
    cells = {header: [make(key) for key in wanted] for header, make in made.items()}
    cells = {header: column for header, column in cells.items() if any(cell.text != DASH.text for cell in column)}
    besides = [cell for column in columns for cell in cells.get(column.words, ())]
    plain = words["plain"] if any(cell.detail.startswith("[") for cell in besides) else ""
    note = " ".join(filter(None, (words["note"] if words["p"] in cells else "", plain)))
    return TableView(words["title"], tuple(cells), tuple(zip(*cells.values(), strict=True)), note, whole=whole)


def _cells(matter: Matter, question: Question, marks: dict[Key, Mark], columns: list[Column]) -> dict[str, Make]:
    """Header -> what makes the cell of a group; reference groups have no verdict."""
    words, unit = declaration().table, SCALES[question.scale].unit

    def judged(make: Make) -> Make:
        return lambda key: make(key) if key in marks else DASH

    return {
        words["group"]: lambda key: _name(matter, key),
        words["n"]: lambda key: count_cell(count_of(matter.groups, key)),
        **{each.words: _made(matter, each) for each in columns if each.references},
        question.value: judged(lambda key: value_cell(marks[key], unit)),
        words["interval"]: judged(lambda key: interval_cell(marks[key], unit)),
        words["state"]: judged(lambda key: state_cell(matter.groups.standing(question.theory, key))),
        words["p"]: judged(lambda key: adjusted_p_cell(matter, matter.primary(question.theory, key))),
        **{each.words: _made(matter, each) for each in columns if not each.references},
    }


def _made(matter: Matter, column: Column) -> Make:
    """What makes the cells of a declared column."""
    scale = SCALES[column.scale]

    def cell(key: Key) -> Cell:
        if matter.is_reference(key) and not column.references:
            return DASH
        mark = measure_mark(matter, column.series, key, scale)
        shown = matter.groups.published(key)
        if mark.value is None and shown is not None and shown.shown and mark.note == shown.shown:
            return Cell(shown.shown, "number")
        return value_cell(mark, scale.unit, ends=True)

    return cell


def _name(matter: Matter, key: Key) -> Cell:
    label = matter.groups.label(key)
    return Cell(declaration().table["reference"].format(group=label) if matter.is_reference(key) else label)
