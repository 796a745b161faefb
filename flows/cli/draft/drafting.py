"""Drafts an audit of a table: decision, people, columns, year and recipe, from what the table shows and a user chose.

The draft is a value: the same table and choices make the same draft. What of it is a guess: `questions`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np

from flows.cli.draft import columns, people, vocabulary
from flows.cli.draft import decision as decisions
from flows.cli.draft.columns import Entry, Loss, Split
from flows.cli.draft.decision import Candidate, Outcomes, Reading
from flows.cli.draft.people import Attribute
from flows.cli.draft.table import Column, Table, with_derived
from flows.cli.draft.vocabulary import Meaning, Side, plain
from schemas.audit.intake import ColumnRecipe
from schemas.audit.source import Derived
from schemas.errors import SpecError, nearest

MADE_KEY: Final = "decision.made"
"""The setting by which a decision is made of the columns that mark its outcomes, though they leave doubt."""


BEST: Final = 3
"""Candidates that are named."""
_YEAR: Final = re.compile(r"(?<!\d)(19[89]\d|20[0-4]\d)(?!\d)")
_TITLES: Final = {
    "lending": "Loan decisions",
    "hiring": "Hiring decisions",
    "admissions": "Admissions",
    "justice": "Pretrial decisions",
}

Repeats = Literal["first", "all", "none"]


@dataclass(frozen=True)
class Choices:
    """What a user chose: settings of the spec by their dotted keys, and the questions with an accepted default."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
    is_review: bool = False
    """Whether the settings are those of a spec that lies there, so that they are questions still."""

    def given(self, key: str) -> bool:
        """Whether a user gave a setting, so that nothing is left to ask of it."""
        return key in self.settings and not self.is_review

    def with_setting(self, settings: Mapping[str, Any]) -> "Choices":
        """The choices with further settings."""
        return replace(self, settings={**self.settings, **settings})


@dataclass(frozen=True)
class Year:
    """The year of the decisions."""

    value: int
    column: str = ""
    """The column that tells it."""
    rows: Mapping[int, int] = field(default_factory=dict)
    """Year -> rows, the most frequent first."""
    why: str = ""
    """What there is to confirm; empty if it is certain."""


@dataclass(frozen=True)
class Draft:
    """A drafted audit."""

    table: Table
    choices: Choices
    ranked: tuple[Candidate, ...]
    """The columns that could hold the decision."""
    outcomes: Outcomes | None
    """Columns that each mark the rows of one outcome, of which the decision is made, or may be."""
    decision: Candidate | None
    sides: Reading
    attributes: tuple[Attribute, ...]
    left_people: tuple[str, ...]
    """Columns that describe people and are left out."""
    entries: tuple[Entry, ...]
    row_id: str | None
    year: Year
    repeats: Repeats
    title: str

    @property
    def decision_column(self) -> str:
        """The column of the decision; empty where none is chosen."""
        return "" if self.decision is None else self.decision.column

    @cached_property
    def split(self) -> Split:
        """The rows of both sides."""
        return _split(self.table, self.decision, self.sides)

    @property
    def features(self) -> list[str]:
        """The columns that models and distances use."""
        return [entry.name for entry in self.entries if not entry.excluded]

    @property
    def undecided(self) -> dict[str, int]:
        """Values of the decision without a known side -> rows."""
        if self.decision is None:
            return {}
        return {value: rows for value, rows in self.decision.rows.items() if value not in self.sides.meanings}

    def of_side(self, side: Side) -> dict[str, int]:
        """Values of one side of the decision -> rows; a value without a known side is no decision."""
        if self.decision is None:
            return {}
        rows = {value: self.decision.rows.get(value, 0) for value in self.sides.of(side)}
        return {**rows, **self.undecided} if side == "neither" else rows

    @property
    def is_whole(self) -> bool:
        """Whether an audit could read it: it has a decision with both sides, and people."""
        return self.decision is not None and self.sides.has_both and bool(self.attributes)

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Groups that lose more rows than others because features are missing."""
        members = {a.column: people.members(self.table, a) for a in self.attributes}
        return tuple(columns.losses(self.table, self.features, self.split, members))

    def recipes(self) -> dict[str, ColumnRecipe]:
        """How the columns are read that are not plain text: features, ages, and the column of the year."""
        dated = {a.column: a.at for a in self.attributes if a.at}
        required = [*(a.column for a in self.attributes), *dated.values(), self.decision_column, self.year.column]
        required += self.table.parts
        out = {}
        for name in self.table.names:
            entry = next((e for e in self.entries if e.name == name), None)
            column = self.table.columns[name]
            recipe = people.age_recipe(column, dated[name]) if name in dated else columns.recipe_of(column)
            if recipe is not None and (name in required or (entry is not None and not entry.excluded)):
                prefix = f"source.intake.columns.{name}."
                updates = {k.removeprefix(prefix): v for k, v in self.choices.settings.items() if k.startswith(prefix)}
                out[name] = ColumnRecipe.model_validate({**recipe.model_dump(), **updates}) if updates else recipe
        return out


def groups_key(column: str) -> str:
    """The setting by which groups of a protected column are joined: group -> its values."""
    return f"protected.{column}.groups"


def drafted(table: Table, choices: Choices | None = None) -> Draft:
    """The draft of a table.

    Raises:
        SpecError: a choice does not fit the table.
    """
    choices = choices or Choices()
    ranked = _ranked(table)
    outcomes = decisions.outcomes(table)
    derive = _derive(table, choices, ranked, outcomes)
    if derive != table.source.derive:
        source = table.source.model_copy(update={"derive": derive})
        of_file = {name: column for name, column in table.columns.items() if name not in table.source.derive}
        return drafted(with_derived(replace(table, source=source, columns=of_file)), choices)
    decision = _decision(table, choices, ranked)
    row_id = columns.find_row_id(table, "" if decision is None else decision.column)
    repeats = _repeats(table, choices, row_id)
    if repeats == "first" and table.repeats.any():
        table = table.once()
        return replace(drafted(table, choices), repeats=repeats)
    sides = Reading({}) if decision is None else _sides(decision, choices)
    split = _split(table, decision, sides)
    column = "" if decision is None else decision.column
    names = _attribute_names(table, choices, column)
    attributes = _attributes(table, choices, names, split)
    entries = columns.entries(table, column, split, names, row_id)
    parts = table.parts
    entries = [columns.part(entry, parts[entry.name]) if entry.name in parts else entry for entry in entries]
    entries = [_chosen(entry, choices, table.columns[entry.name]) for entry in entries]
    return Draft(
        table, choices, tuple(ranked), outcomes, decision, sides, tuple(attributes),
        tuple(people.others(table, column, names)), tuple(entries), row_id,
        _year(table, choices, attributes), repeats, _title(table, decision),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------------
# The decision and its sides.


def _ranked(table: Table) -> list[Candidate]:
    values = [
        decisions.Values(name, column.values, column.missing_share)
        for name, column in table.columns.items()
        if column.form in ("category", "few numbers", "bands") and len(column.values) <= decisions.MOST_VALUES
    ]
    excluded = {name for name, column in table.columns.items() if people.kind_of(column)} | table.parts.keys()
    last = next(name for name in reversed(table.names) if name not in table.source.derive)
    ranked = decisions.candidates(values, excluded, table.parts.get(last, last))
    codes = set()  # of a decision that another column holds in words
    for pair in combinations(ranked[:BEST], 2):
        words_of = [[*(v.side if (v := c.reading.meanings.get(value)) else "" for value in c.rows), None] for c in pair]
        groups = zip(*(table.columns[candidate.column].groups.tolist() for candidate in pair), strict=True)
        pairs = set(groups)  # -1 is the last place: that of no value
        one_to_one = len(pairs) == len(dict(pairs)) == len({second for _, second in pairs})
        if one_to_one and all(words_of[0][first] == words_of[1][second] for first, second in pairs):
            codes.add(min(pair, key=lambda candidate: sum(map(len, candidate.rows))).column)
    return [candidate for candidate in ranked if candidate.column not in codes]


def _derive(
    table: Table, choices: Choices, ranked: Sequence[Candidate], outcomes: Outcomes | None
) -> Mapping[str, Derived]:
    """The columns that are made of others: a decision, where it lies in several and no column has both its sides."""
    derive, chosen = table.source.derive, choices.settings.get("decision.column")
    if choices.is_review or chosen in derive:
        return derive
    legends = {name: derived for name, derived in derive.items() if derived.values}
    if chosen is not None:
        return legends
    if len(legends) < len(derive) or outcomes is None:
        return derive
    if choices.settings.get(MADE_KEY):
        return {**legends, decisions.name_of_made(table): outcomes.derived()}
    if not outcomes.is_certain:
        return derive
    marks = {mark.column: mark for mark in outcomes.marks}
    if any(c.reading.has_both and c.score > 0 and c.column not in marks for c in ranked):
        return derive
    leader = decisions.leading(ranked)
    if leader is not None and leader.reading.has_both:
        split = _split(table, leader, leader.reading)
        sides = {"favourable": split.favourable, "unfavourable": split.unfavourable}
        if all(np.array_equal(sides[mark.side], mark.rows) for mark in outcomes.marks if mark.side in sides):
            return derive  # a yes or no that the other column only repeats
    return {**legends, decisions.name_of_made(table): outcomes.derived()}


def _decision(table: Table, choices: Choices, ranked: Sequence[Candidate]) -> Candidate | None:
    of_outcomes = (name for name, derived in table.source.derive.items() if derived.rows)
    name = choices.settings.get("decision.column") or next(of_outcomes, None)
    if name is None:
        return decisions.leading(ranked)
    if name not in table.columns and choices.is_review:
        return None
    if name not in table.columns:
        raise SpecError(f"--decision {name}: the table has no such column; {nearest(name, table.names)}")
    column = table.columns[name]
    if vocabulary.protected_kind(name):
        best = ", ".join(candidate.column for candidate in ranked[:BEST])
        raise SpecError(f"--decision {name}: that names a protected attribute; expected the decision, such as {best}")
    if not 2 <= len(column.values) <= decisions.MOST_VALUES:
        number = len(column.values)
        raise SpecError(
            f"--decision {name}: {number:,} {'value' if number == 1 else 'values'}; expected 2 to "
            f"{decisions.MOST_VALUES}, such as approved and denied: give another column, or one that you made of it"
        )
    ranked_one = next((candidate for candidate in ranked if candidate.column == name), None)
    return ranked_one or Candidate(name, column.values, decisions.read(name, column.values), 0.0)


def _sides(decision: Candidate, choices: Choices) -> Reading:
    """The sides by the words, with what a user gave in their place."""
    listed_values: dict[Side, list[str]] = {}
    sides: tuple[Side, ...] = ("favourable", "unfavourable", "neither")
    for side in sides:
        listed = [_value(decision, v, side, choices) for v in choices.settings.get(f"decision.{side}", ())]
        listed_values[side] = [value for value in listed if value]
    if not any(listed_values.values()):
        return decision.reading
    twice = set(listed_values["favourable"]) & set(listed_values["unfavourable"])
    if twice:
        raise SpecError(f"--unfavourable {', '.join(twice)}: given as --favourable, too; expected other values")
    if listed_values["unfavourable"] and not listed_values["favourable"] and choices.is_review:
        return Reading({value: Meaning(side) for side in sides for value in listed_values[side]}, "given")
    if listed_values["unfavourable"] and not listed_values["favourable"]:
        raise SpecError("--unfavourable: which value favours the applicant? Give it, too: --favourable VALUE")
    chosen = {value: Meaning(side) for side, values in listed_values.items() for value in values}
    other_values = [value for value in decision.rows if value not in chosen]
    if not other_values and not listed_values["unfavourable"]:
        chosen_text = ", ".join(listed_values["favourable"])
        raise SpecError(f"--favourable {chosen_text}: that is every value; expected some to be unfavourable")
    if not listed_values["unfavourable"]:
        chosen |= dict.fromkeys(
            _opposites(decision, listed_values["favourable"], other_values), Meaning("unfavourable")
        )
    for value in other_values:
        meaning = decision.reading.meanings.get(value) or vocabulary.meaning(value)
        if value not in chosen and meaning is not None and meaning.side == "neither":
            chosen[value] = meaning
    return Reading(chosen, "given")


def _value(decision: Candidate, value: object, side: str, choices: Choices) -> str:
    """The value of the table that a user means, in any spelling; empty for a written spec where no row has it."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    same = next((v for v in decision.rows if v == text), None)
    same = same or next((v for v in decision.rows if plain(v) == plain(text)), None)
    if same is None and not choices.is_review:
        hint = nearest(text, list(decision.rows))
        raise SpecError(f"--{side} {text}: no row of {decision.column} has it; {hint}")
    return same or ""


def _opposites(decision: Candidate, approvals: Sequence[str], other_values: Sequence[str]) -> list[str]:
    """Denials where a user gave approvals: plain words and codes, no to yes, and the other one of two values."""
    forms = {plain(value) for value in approvals}
    plainly = [v for v in other_values if (m := decision.reading.meanings.get(v)) and m.side == "unfavourable"]
    plainly = plainly or [
        v for v in other_values if (m := vocabulary.meaning(v)) and m.side == "unfavourable" and len(v) > 1
    ]
    if plainly:
        return plainly
    yes, no = vocabulary.answers("yes"), vocabulary.answers("no")
    for answer_words, other in ((yes, no), (no, yes)):
        answers = [value for value in other_values if forms & answer_words and plain(value) in other]
        if answers:
            return answers
    if len(other_values) == 1 and vocabulary.meaning(other_values[0]) is None:
        return list(other_values)
    turned = [v for v in other_values if (m := decision.reading.meanings.get(v)) and m.side == "favourable"]
    return turned if len(other_values) == 1 else []


def _split(table: Table, decision: Candidate | None, sides: Reading) -> Split:
    if decision is None:
        none = np.zeros(table.rows, dtype=bool)
        return Split(none, none)
    column = table.columns[decision.column]
    places = {value: i for i, value in enumerate(column.values)}
    favourable, unfavourable = (
        np.isin(column.groups, [places[v] for v in sides.of(side)]) for side in ("favourable", "unfavourable")
    )
    return Split(favourable, unfavourable)


# --------------------------------------------------------------------------------------------------------------------
# People, columns, year, repeats and title.


def _attribute_names(table: Table, choices: Choices, decision: str) -> list[str]:
    names = choices.settings.get("protected")
    if names is not None and choices.is_review:
        return [name for name in names if name in table.columns]
    return list(names) if names is not None else people.found(table, decision)


def _attributes(table: Table, choices: Choices, names: Sequence[str], split: Split) -> list[Attribute]:
    """The attributes, each with the first of the given references that is one of its groups."""
    remaining = list(choices.settings.get("reference", ()))
    out = []
    for name in names:
        chosen = choices.settings.get(f"protected.{name}.reference")
        joins = choices.settings.get(groups_key(name), {})
        for value in [] if chosen else remaining:
            if value in joins or (name in table.columns and _has_group(table.columns[name], value)):
                chosen = value
                remaining.remove(value)
                break
        if choices.is_review:  # of a table that may be another year's
            spelled = [plain(value) for value in table.columns[name].values] if name in table.columns else []
            present = {group: [v for v in values if plain(v) in spelled] for group, values in joins.items()}
            joins = {group: values for group, values in present.items() if len(values) > 1}
            if chosen not in joins and not (spelled and chosen and _has_group(table.columns[name], chosen)):
                chosen = None
        try:
            attribute = people.attribute(
                table, name, split.favourable, chosen, joins=joins, is_given=choices.given("protected")
            )
        except SpecError:
            if choices.is_review:  # another year's table, of which `review` says what changed
                continue
            raise
        out.append(replace(attribute, reference_is_given=chosen is not None and not choices.is_review))
    if remaining:
        groups = [group for attribute in out for group in attribute.rows]
        raise SpecError(
            f"--reference {remaining[0]}: no row of {', '.join(names)} has it; {nearest(remaining[0], groups)}"
        )
    return out


def _has_group(column: Column, value: str) -> bool:
    if column.is_number or column.form == "date":
        return any(word in value for word in ("under", "over", " to "))
    return any(plain(value) == plain(group) for group in column.values)


def _chosen(entry: Entry, choices: Choices, column: Column) -> Entry:
    """The entry by the role that a user gave."""
    role = choices.settings.get(f"columns.{entry.name}.role")
    if role == "excluded" and not entry.excluded:
        return replace(entry, reason="chosen", why="left out by choice", type="nominal", order=(), doubt="")
    if role == "feature" and entry.excluded:
        return columns.feature(column)
    return entry


def _repeats(table: Table, choices: Choices, row_id: str | None) -> Repeats:
    chosen = choices.settings.get("source.intake.repeats")
    if chosen is not None:
        return chosen  # type: ignore[no-any-return]
    return "first" if row_id is not None and table.repeats.any() else "all"


def _year(table: Table, choices: Choices, attributes: Iterable[Attribute]) -> Year:
    """The year of most rows, by a column of years or dates, else by a term or a title."""
    chosen_text = choices.settings.get("year")
    attribute_columns = {attribute.column for attribute in attributes}
    guess = _year_of_columns(table, attribute_columns) or _year_of_outcomes(table) or _year_of_texts(table)
    if guess is None:
        today = datetime.now(UTC).year
        guess = Year(today, why="the year of the decisions: no column and no title tells it")
    if chosen_text is None:
        return guess
    return replace(guess, value=int(chosen_text), why=guess.why if choices.is_review else "")


def _year_of_columns(table: Table, attribute_columns: Iterable[str]) -> Year | None:
    years: list[tuple[int, str, dict[int, int]]] = []
    of_outcomes = {name for derived in table.source.derive.values() if derived.rows for name in derived.columns}
    for name, column in table.columns.items():
        if name in attribute_columns or name in of_outcomes or vocabulary.protected_kind(name):
            continue  # a date of one outcome has no year of the others
        if vocabulary.is_named(name, "year") and column.form != "date" and column.values:
            if all(_YEAR.fullmatch(value) for value in column.values):
                years.append((0, name, {int(value): rows for value, rows in column.values.items()}))
        elif column.form == "date":
            rows: dict[int, int] = {}
            for text, day in zip(column.texts, column.days, strict=True):
                if day:
                    rows[int(day[:4])] = rows.get(int(day[:4]), 0) + column.counts[text]
            # a date of what comes after a decision is filled in for some alone
            after = column.missing_share > (0.05 if vocabulary.is_named(name, "after") else 0.5)
            order = 4 if after else 1 if vocabulary.is_named(name, "decided") else 2
            years.append((order, name, rows))
    usable = [(order, name, rows) for order, name, rows in years if rows and order < 4]
    if not usable:
        return None
    _, name, rows = min(usable, key=lambda item: item[0])
    rows = dict(sorted(rows.items(), key=lambda item: -item[1]))
    value = next(iter(rows))
    if len(rows) == 1:
        return Year(value, name, rows)
    counts = ", ".join(f"{year}: {n:,}" for year, n in sorted(rows.items()))
    return Year(value, name, rows, f"{name} has rows of several years ({counts}); the audit is of {value} alone")


def _year_of_outcomes(table: Table) -> Year | None:
    """The year of most of the dates that mark the outcomes; no column has that of each row."""
    rows: Counter[int] = Counter()
    names = [name for derived in table.source.derive.values() if derived.rows for name in derived.columns]
    for column in (table.columns[name] for name in names if table.columns[name].form == "date"):
        for text, day in zip(column.texts, column.days, strict=True):
            if day:
                rows[int(day[:4])] += column.counts[text]
    if not rows:
        return None
    counts = ", ".join(f"{year}: {n:,}" for year, n in sorted(rows.items()))
    return Year(rows.most_common(1)[0][0], "", dict(rows.most_common()), f"by the dates of the decision ({counts})")


def _year_of_texts(table: Table) -> Year | None:
    for name, column in table.columns.items():
        if vocabulary.is_named(name, "term") and 0 < len(column.values) <= decisions.MOST_VALUES:
            rows: dict[int, int] = {}
            for value, n in column.values.items():
                for year in sorted(set(_YEAR.findall(value))):  # of 2023/2024 the first, in every process
                    rows[int(year)] = rows.get(int(year), 0) + n
            if rows:
                year = max(rows, key=lambda y: rows[y])
                return Year(year, "", rows, f"{year}, by {name} ({next(iter(column.values))})")
    for hint in table.hints:
        if years_in_line := _YEAR.findall(hint):
            why = f"{years_in_line[-1]}, by the line above the header: {hint.strip()[:60]}"
            return Year(int(years_in_line[-1]), why=why)
    years_in_name = set(_YEAR.findall(table.path.name))
    if len(years_in_name) == 1:
        year = int(years_in_name.pop())
        return Year(year, why="by the name of the file")
    return None


def _title(table: Table, decision: Candidate | None) -> str:
    """What the table is about, by its words; never the name of the file."""
    texts = [*table.names, *(decision.rows if decision is not None else ())]
    points = {sector: sum(vocabulary.tells_sector(text, sector) for text in texts) for sector in _TITLES}
    best = max(points, key=lambda sector: points[sector])
    return _TITLES[best] if points[best] else "Decisions"
