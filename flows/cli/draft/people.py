"""Protected attributes of a table: the columns that hold one, their groups, and the reference group of each."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flows.cli.draft import vocabulary
from flows.cli.draft.table import Column, Table
from flows.cli.draft.vocabulary import plain
from schemas.audit import column as column_names
from schemas.audit.intake import EXCEL, FOLDINGS, ColumnRecipe, tells_birth
from schemas.audit.spec import Protected
from schemas.errors import SpecError, nearest
from tasks.ingest.intake.recipe import Reading, age_cell, cells_of

MOST_ATTRIBUTES: Final = 4
MOST_GROUPS: Final = 40
BANDS: Final = (40.0, 62.0)
"""Ages at which bands begin: 40 is the age of the ADEA, 62 that of the elderly of Regulation B."""
SEVERAL: Final = "several"
"""The group of those who name several groups."""
FEWEST: Final = 10
"""People of a group that is judged."""
_YOUNGEST, _OLDEST, _PLAUSIBLE = 10, 115, 0.95
_MOST_MISSING: Final = 0.5
_FLAGGED: Final = ("race", "ethnicity", "disability", "pregnancy")
"""Kinds of which a flag such as `hispanic` or `disabled` names the group that is compared; `white` names the other."""
_PAIR: Final = ("yes", "no")
_USUAL_SHARE: Final = 0.5
"""Favourable decisions of the usual comparison group, beside the group that has most, from which on it is drafted."""
_SEPARATOR: Final = re.compile(r"\s*[;|/+,&]\s*|\s(?:and|und|et|y|e|i|en|och|og|ve)\s", re.IGNORECASE)
_NO_NAME: Final = re.compile(r"column_\d+")
"""Of a column of a file without header."""
_OTHER_PERSON: Final = re.compile(
    r"co ?-?_?(applicant|borrower|signer|debtor)|joint|spouse|guarantor|loan officer|interviewer|judge", re.IGNORECASE
)


@dataclass(frozen=True)
class Attribute:
    """A protected attribute as it is drafted."""

    column: str
    kind: str
    reference: str
    rows: Mapping[str, int]
    """Group of people -> rows, the most frequent first."""
    favourable: Mapping[str, int]
    """Group -> favourable decisions."""
    nobody: tuple[str, ...] = ()
    """Values that are no people."""
    several: tuple[str, ...] = ()
    """Values that name several groups."""
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Group -> its values, of those that a user joined."""
    bands: tuple[float, ...] = ()
    why_reference: str = ""
    is_given: bool = False
    reference_is_given: bool = False
    missing: int = 0
    at: str = ""
    """Of dates of birth: the column with the date at which the age is taken."""

    @property
    def small(self) -> tuple[str, ...]:
        """Groups of few people."""
        return tuple(group for group, rows in self.rows.items() if rows < FEWEST and group != self.reference)

    @property
    def reported_only(self) -> tuple[str, ...]:
        """Groups that are reported and not judged, and that no rule of the audit knows as such."""
        attribute = Protected(name=self.column, columns=(self.column,), reference=self.reference)
        nobody = [value for value in self.nobody if attribute.judges(value)]
        return (*nobody, *self.small)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Group -> its values, where some are joined or several answers of a person make a group; else empty."""
        joined = {**self.joined, **({SEVERAL: self.several} if self.several else {})}
        if not joined:
            return {}
        alone = {group: (group,) for group in (*self.rows, *self.nobody) if group not in joined}
        return {**alone, **joined}


def kind_of(column: Column) -> str:
    """The protected attribute that a column holds, by its name, its label or its values; empty where none."""
    named = vocabulary.protected_kind(column.name)
    if column.form == "number" or (named and column.form != "category"):
        return named
    if named or (labelled := vocabulary.protected_kind(column.label)):
        return named or labelled
    if len(column.values) > MOST_GROUPS:
        return ""
    return vocabulary.people_kind(column.values, letters=bool(_NO_NAME.fullmatch(column.name)))


def is_age(column: Column) -> bool:
    """Whether a column holds ages in years."""
    if vocabulary.protected_kind(column.name) != "age" or column.form != "number":
        return False
    ages = column.numbers[np.isfinite(column.numbers)]
    if not len(ages) or (column.number and column.number.recipe.unit not in (None, "years")):
        return False
    return bool(((ages >= _YOUNGEST) & (ages <= _OLDEST)).mean() >= _PLAUSIBLE)


def date_of_ages(table: Table, name: str) -> str:
    """The column with the date of the decision, for ages from a column of dates of birth; empty if there is none.

    A date that is called one of a decision comes first, then the one that is filled in most.
    """
    column = table.columns[name]
    if vocabulary.protected_kind(name) != "age" or column.form != "date" or not births(column):
        return ""
    dated = [
        other
        for other in table.columns.values()
        if other.form == "date"
        and other.missing_share <= _MOST_MISSING
        and not vocabulary.protected_kind(other.name)
        and (vocabulary.is_named(other.name, "decided") or not vocabulary.is_named(other.name, "after"))
        and all("%d" in layout or layout == EXCEL for layout in other.formats)
    ]
    for other in sorted(dated, key=lambda d: (not vocabulary.is_named(d.name, "decided"), d.missing_share)):
        years = ages_at(column, other)
        present = years[np.isfinite(years)]
        if len(present) and ((present >= _YOUNGEST) & (present <= _OLDEST)).mean() >= _PLAUSIBLE:
            return other.name
    return ""


def births(column: Column) -> tuple[str, ...]:
    """The formats of a column of dates with a day and a century."""
    return tuple(layout for layout in column.formats if tells_birth(layout))


def age_recipe(column: Column, at: str) -> ColumnRecipe:
    """How dates of birth are read as ages at another column's date."""
    return ColumnRecipe(read="age", format=births(column), at=at, codes=column.missing_codes)


def ages_at(birth: Column, decided: Column) -> NDArray[np.float64]:
    """``(rows,)`` ages in whole years, by intake; NaN where a date is missing or gives no age."""
    on = ColumnRecipe(read="date", format=decided.formats, codes=decided.missing_codes)
    cells = cells_of(Reading(birth.name, age_recipe(birth, decided.name), FOLDINGS), birth.counts)
    days = cells_of(Reading(decided.name, on, FOLDINGS), decided.counts)
    pairs, rows = np.unique(np.stack([birth.codes, decided.codes]), axis=1, return_inverse=True)
    texts = [age_cell(cells[birth.texts[b]], days[decided.texts[d]]).text for b, d in pairs.T]
    return np.array([float(text) if text.isdigit() else np.nan for text in texts])[rows]


def found(table: Table, decision: str) -> list[str]:
    """The columns that hold a protected attribute, one for each kind, those first that are drafted first.

    Of flags, such as `race_white` and `race_black`, each one is drafted as far as there is room.
    """
    ranked: list[tuple[bool, bool, bool, int, int]] = []
    for position, column in enumerate(table.columns.values()):
        if column.name in (decision, *table.parts) or not kind_of(column) or column_names.is_observed(column.name):
            continue
        if _OTHER_PERSON.search(column.name.replace("_", " ")) or column.missing_share > _MOST_MISSING:
            continue
        if is_age(column) or _has_groups(column) or date_of_ages(table, column.name):
            # Of several columns of a kind: one that is named, one derived from them, one of words, the shortest name.
            named = bool(vocabulary.protected_kind(column.name))
            derived = "derived" in vocabulary.parts(column.name)
            words = column.form != "date" and any(not group.lstrip("-").isdigit() for group in column.values)
            ranked.append((not named, not derived, not words, len(column.name), position))
    first: dict[str, str] = {}
    for *_, position in sorted(ranked):
        first.setdefault(kind_of(table.columns[table.names[position]]), table.names[position])
    names = [first[kind] for kind in vocabulary.KINDS if kind in first][:MOST_ATTRIBUTES]
    flags = [table.columns[name] for name in names if _is_flag(table.columns[name])]
    for *_, position in sorted(ranked, key=lambda rank: rank[-1]):
        column = table.columns[table.names[position]]
        alike = [flag for flag in flags if kind_of(flag) == kind_of(column)]
        if len(names) < MOST_ATTRIBUTES and alike and _is_flag(column):
            pairs = [np.unique(np.stack([column.groups, flag.groups]), axis=1).T for flag in alike]
            if all(len(pair) > len(_PAIR) for pair in pairs):  # no other flag parts the rows as this one does
                names.append(column.name)
                flags.append(column)
    return sorted(names, key=lambda name: vocabulary.KINDS.index(kind_of(table.columns[name])))


def _is_flag(column: Column) -> bool:
    """Whether a column marks the members of a group."""
    flags = {*vocabulary.answers("yes"), *vocabulary.answers("no"), "0", "1"}
    return kind_of(column) in _FLAGGED and len(column.values) == len(_PAIR) and set(map(plain, column.values)) <= flags


def _has_groups(column: Column) -> bool:
    if column.form in ("number", "date"):
        return False
    people = [group for group in column.values if not vocabulary.is_nobody(group)]
    return len(people) >= 2 and len(column.values) <= MOST_GROUPS


def others(table: Table, decision: str, drafted_names: Collection[str]) -> Iterator[str]:
    """Columns that describe people and that the draft leaves out."""
    for column in table.columns.values():
        if column.name not in (decision, *drafted_names, *table.parts) and kind_of(column):
            yield column.name


def attribute(
    table: Table,
    name: str,
    favourable: NDArray[np.bool_],
    reference: str | None = None,
    *,
    joins: Mapping[str, Sequence[str]] | None = None,
    is_given: bool = False,
) -> Attribute:
    """A protected attribute with its groups and its reference group.

    Args:
        table: the table.
        name: the column.
        favourable: ``(rows,)`` decisions for the applicant.
        reference: the reference group that a user gave.
        joins: group -> values, of groups that a user joined.
        is_given: whether a user gave the column, too.

    Raises:
        SpecError: the column is not there or has no groups, or no row has the reference group or one that is joined.
    """
    if name not in table.columns:
        raise SpecError(f"--protected {name}: the table has no such column; {nearest(name, table.names)}")
    column = table.columns[name]
    kind = kind_of(column) or ("age" if is_given and column.is_number else "")
    if column.is_number and (is_age(column) or is_given):
        return _in_bands(column, None, kind, favourable, reference, is_given)
    if at := date_of_ages(table, name):
        ages = ages_at(column, table.columns[at])
        return replace(_in_bands(column, ages, kind, favourable, reference, is_given), at=at)
    if column.form == "date":
        raise SpecError(
            f"--protected {name}: dates of birth tell an age where they have a year of four digits and another column "
            "has the date of the decision: add that, or give another column"
        )
    groups = column.values
    if not 2 <= len(groups) <= MOST_GROUPS:
        raise SpecError(
            f"--protected {name}: {len(groups):,} {'value' if len(groups) == 1 else 'values'}; expected a column of 2 "
            f"to {MOST_GROUPS} groups, or of ages: give another"
        )
    unknown = {"n"} if kind == "sex" and vocabulary.men_and_women(groups) else set[str]()
    nobody = tuple(g for g in groups if (vocabulary.is_nobody(g) or plain(g) in unknown) and g != reference)
    people = {group: rows for group, rows in groups.items() if group not in nobody}
    if not people:
        raise SpecError(f"--protected {name}: no value is a group of people; give --reference VALUE, or another column")
    joined = _joins(name, joins or {}, people)
    joined_values = {value for values in joined.values() for value in values}
    several = tuple(value for value in _several(list(people)) if value not in joined_values)
    by_place = np.bincount(column.groups[favourable & (column.groups >= 0)], minlength=len(groups))
    good = {group: int(by_place[i]) for i, group in enumerate(groups) if group in people}
    for group, values in {**joined, **({SEVERAL: several} if several else {})}.items():
        people, good = _joined(people, group, values), _joined(good, group, values)
    reference = next((group for group, values in joined.items() if reference in values), reference)
    chosen, why = _reference(kind, name, people, good)
    if reference is not None:
        reference_group = _given_reference(name, reference, {**people, **dict.fromkeys(nobody, 0)})
        chosen, why = reference_group, why if reference_group == chosen else "as given"
    return Attribute(
        name, kind, chosen, people, good, nobody, several, joined, (), why, is_given, missing=column.absent_rows
    )


def _in_bands(
    column: Column,
    ages: NDArray[np.float64] | None,
    kind: str,
    favourable: NDArray[np.bool_],
    reference: str | None,
    is_given: bool,
) -> Attribute:
    """Ages cut into bands; what is no age has no group. ``ages`` are those of the rows, of dates of birth."""
    numbers = column.numbers_of_texts if ages is None else ages
    places = column.codes if ages is None else np.arange(len(ages))
    cuts = list(BANDS)
    if is_given and column.is_number and not is_age(column):  # another number that a user gave: it is cut at its median
        cuts = [float(np.nanmedian(column.numbers))]
    names = band_names(tuple(cuts))
    place = np.where(np.isfinite(numbers), np.searchsorted(cuts, np.nan_to_num(numbers), side="right"), -1)
    counts = np.array(list(column.counts.values())) if ages is None else np.ones(len(ages), dtype=np.int64)
    rows = {name: int(counts[place == i].sum()) for i, name in enumerate(names)}
    good = {name: int(((place[places] == i) & favourable).sum()) for i, name in enumerate(names)}
    people = {name: n for name, n in rows.items() if n}
    chosen, why = _reference("", column.name, people, good)
    if reference is not None:
        reference_group = _given_reference(column.name, reference, people)
        chosen, why = reference_group, why if reference_group == chosen else "as given"
    missing = int(counts[place < 0].sum())
    return Attribute(column.name, kind, chosen, people, good, (), (), {}, tuple(cuts), why, is_given, missing=missing)


def band_names(bands: tuple[float, ...]) -> tuple[str, ...]:
    """The groups that bands make, from the lowest."""
    low = f"under {bands[0]:g}"
    return Protected(name="age", columns=("age",), bands=bands, reference=low).band_names


def members(table: Table, of: Attribute) -> dict[str, NDArray[np.bool_]]:
    """Group -> ``(rows,)`` who is in it."""
    column = table.columns[of.column]
    if of.bands:
        ages = ages_at(column, table.columns[of.at]) if of.at else column.numbers
        place = np.searchsorted(of.bands, np.nan_to_num(ages), side="right")
        return {name: (place == i) & np.isfinite(ages) for i, name in enumerate(band_names(of.bands))}
    places = {value: i for i, value in enumerate(column.values)}
    values_of = {group: (group,) for group in of.rows if group in places} | of.groups
    return {
        group: np.isin(column.groups, [places[value] for value in values_of[group] if value in places])
        for group in of.rows
        if group in values_of
    }


def _given_reference(name: str, reference: str, groups: Mapping[str, int]) -> str:
    same = next((group for group in groups if plain(group) == plain(reference)), None)
    if same is None:
        raise SpecError(f"--reference {reference}: no row of {name} has it; {nearest(reference, list(groups))}")
    return same


def _several(groups: Sequence[str]) -> tuple[str, ...]:
    """Values that join others of the column by a sign: `White;Asian` with White and Asian."""
    alone = {plain(group) for group in groups}
    out = []
    for group in groups:
        members = _SEPARATOR.split(group)
        if len(members) > 1 and sum(plain(member) in alone for member in members) >= 2:
            out.append(group)
    return tuple(out)


def _joined(rows: Mapping[str, int], name: str, groups: Sequence[str]) -> dict[str, int]:
    single = {group: n for group, n in rows.items() if group not in groups}
    return {**single, name: sum(rows[group] for group in groups)}


def _joins(column: str, joins: Mapping[str, Sequence[str]], people: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """The groups that a user joined, by the values of the column.

    Raises:
        SpecError: a value is no group of the column, is in two of them, or a name is that of another group.
    """
    spelled = {plain(group): group for group in people}
    out: dict[str, tuple[str, ...]] = {}
    for name, values in joins.items():
        for value in values:
            if plain(value) not in spelled:
                raise SpecError(f"{name} = {value}: no group of {column}; {nearest(value, list(people))}")
        out[name] = tuple(dict.fromkeys(spelled[plain(value)] for value in values))
    listed = [value for values in out.values() for value in values]
    for name, values in out.items():
        if spelled.get(plain(name), name) not in (*values, name) or (name in people and name not in values):
            raise SpecError(f"{name} = ...: {column} has that group already; add it to those that are joined")
        if len(values) < len(_PAIR) or len(listed) > len(set(listed)):
            raise SpecError(f"{name} = {', '.join(values)}: expected two groups or more, each joined once")
    if len(people) - len(listed) + len(out) < len(_PAIR):
        raise SpecError(f"{', '.join(out)}: those are all groups of {column}; leave one to compare with")
    return out


def _reference(kind: str, name: str, rows: Mapping[str, int], favourable: Mapping[str, int]) -> tuple[str, str]:
    """The reference group and why: the usual one if it has enough favourable decisions, else the one with most."""
    candidates = [group for group in rows if not vocabulary.is_rest(group) and group != SEVERAL] or list(rows)
    most = max(candidates, key=lambda group: (favourable[group], rows[group]))
    usual = _usual(kind, name, candidates)
    if usual is not None and favourable[usual] >= _USUAL_SHARE * favourable[most]:
        return usual, "the usual comparison group"
    return most, "the group with most favourable decisions"


def _usual(kind: str, name: str, groups: Sequence[str]) -> str | None:
    """The group that others are usually compared with, by its word."""
    if kind == "sex":
        pair = vocabulary.men_and_women(groups)
        if pair and set(map(plain, pair)) == {"m", "v"} and vocabulary.parts(name)[:1] == ("sexo",):
            return pair[1]  # varón and mujer, and not man and vrouw
        if pair:
            return pair[0]
        flags = {plain(group): group for group in groups}
        if set(flags) in ({"0", "1"}, {"yes", "no"}, {"true", "false"}):
            women = {"female", "woman", "women"} & set(vocabulary.parts(name))
            men = {"male", "man", "men"} & set(vocabulary.parts(name))
            if women or men:
                return next(
                    flags[form] for form in (("0", "no", "false") if women else ("1", "yes", "true")) if form in flags
                )
        return None
    no = [group for group in groups if plain(group) in (*vocabulary.answers("no"), "0")]
    yes = [group for group in groups if plain(group) in (*vocabulary.answers("yes"), "1")]
    if kind in _FLAGGED and len(no) == len(yes) == 1 and len(groups) == len(_PAIR):
        words = vocabulary.parts(name)
        names_usual = any(vocabulary.is_usual(kind, word) for word in words) != bool({"not", "non"} & set(words))
        return yes[0] if names_usual else no[0]
    return next((group for group in groups if vocabulary.is_usual(kind, group)), None)
