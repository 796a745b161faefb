"""Questions of a draft, one data model for the terminal, the file and the browser: what is a guess, and its default.

What is certain has no question. A line of the screen holds the questions of one weight, 1 being the worst if wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from flows.cli.draft import columns, vocabulary
from flows.cli.draft.decision import written
from flows.cli.draft.drafting import BEST, MADE_KEY, Choices, Draft, drafted, groups_key
from flows.cli.draft.people import BANDS, FEWEST, SEVERAL, Attribute
from flows.cli.draft.vocabulary import Side
from schemas.errors import SpecError
from tasks.ingest.intake.folding import near_pairs

YES: Final = "yes"
MADE: Final = "made of marks"
"""The answer by which a decision is made of the columns that mark its outcomes."""
_SHOWN, _NAMED, _FEW = 8, 6, 3
_NEAR_VALUES: Final = 60
_COMPLETE: Final = 0.9
_REPEATED: Final = 0.01
_SIDES: Final[tuple[Side, ...]] = ("favourable", "unfavourable", "neither")


@dataclass(frozen=True)
class Evidence:
    """A fact that a question rests on."""

    what: str
    rows: int | None = None
    meaning: str = ""

    def as_json(self) -> dict[str, Any]:
        """The fact as JSON."""
        return {"what": self.what, "rows": self.rows, "as": self.meaning}


@dataclass(frozen=True)
class Option:
    """An answer, what it does, and the settings that it changes."""

    answer: str
    effect: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON."""
        return {"answer": self.answer, "effect": self.effect, **({"set": dict(self.set)} if self.set else {})}


@dataclass(frozen=True)
class Question:
    """A guess of a draft that a user has to confirm or correct."""

    key: str
    keys: tuple[str, ...]
    """Keys of the spec that it is about; each has its mark in the file."""
    weight: int
    topic: str
    text: str
    default: str | None
    """The answer of the draft; None where there is none."""
    options: tuple[Option, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    answered: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The question as JSON."""
        return {
            "key": self.key,
            "keys": list(self.keys),
            "weight": self.weight,
            "topic": self.topic,
            "text": self.text,
            "default": self.default,
            "options": [option.as_json() for option in self.options],
            "evidence": [evidence.as_json() for evidence in self.evidence],
            "answered": self.answered,
        }


def questions(draft: Draft) -> list[Question]:
    """All questions of a draft, the worst first."""
    makers = (
        decision_question,
        sides_question,
        people_question,
        reference_question,
        groups_question,
        row_questions,
        number_question,
        spelling_question,
        later_question,
        left_question,
        year_question,
    )
    all_questions = [question for maker in (*makers, weight_question, verdict_questions) for question in maker(draft)]
    confirmed = draft.choices.confirmed
    all_questions = [replace(q, answered=q.default) if q.key in confirmed and q.default else q for q in all_questions]
    return sorted(all_questions, key=lambda question: question.weight)


def open_questions(draft: Draft) -> list[Question]:
    """The questions without an answer."""
    return [question for question in questions(draft) if question.answered is None]


def join_question(second: str, common: Sequence[str]) -> Question:
    """By which column a second file belongs to a table; it comes before all others, as there is no draft without it."""
    text = f"Which column identifies an application in both files, so that {second} can be joined?"
    options = tuple(Option(name, "both files have it") for name in common[:_SHOWN])
    return Question("join", ("source.with",), 1, "join", text, None, options)


def answered(draft: Draft, answers: Mapping[str, str]) -> Draft:
    """The draft with answers: key of a question -> one of its answers, or for some a value of the table.

    Raises:
        SpecError: there is no such question, or no such answer.
    """
    pending = {question.key: question for question in questions(draft)}
    settings: dict[str, Any] = {}
    confirmed = set(draft.choices.confirmed)
    for key, answer in answers.items():
        if key not in pending:
            raise SpecError(f"{key}: no such question; open are {', '.join(pending)}")
        option = next((option for option in pending[key].options if option.answer == answer), None)
        if option is not None and option.set:
            settings |= option.set
        elif answer == pending[key].default:
            confirmed.add(key)
        elif option is None:
            settings |= _free(draft, pending[key], answer)
    if any(groups_key(attribute.column) in settings for attribute in draft.attributes):
        confirmed -= {"reference"}  # it was read with other groups
    choices = replace(draft.choices.with_setting(settings), confirmed=frozenset(confirmed))
    return drafted(draft.table, replace(choices, is_review=False) if settings else choices)


def _free(draft: Draft, question: Question, answer: str) -> dict[str, Any]:
    """The settings of an answer that is no listed one: a column, a value, a year, or groups to join."""
    if question.key in ("reference", "groups") and "=" in answer:
        return _joins(draft, answer)
    if question.key == "decision":
        return {"decision.column": answer}
    if question.key == "sides":
        return {"decision.favourable": (answer,)}
    if question.key == "protected":
        return {"protected": tuple(name.strip() for name in answer.split(","))}
    if question.key == "reference":
        return {"reference": (answer,)}
    if question.key == "year" and answer.isdecimal():
        return {"year": int(answer)}
    choices_known = ", ".join(option.answer for option in question.options) or question.default
    raise SpecError(f"{question.key}: {answer!r} is no answer; expected {choices_known}")


def _joins(draft: Draft, answer: str) -> dict[str, Any]:
    """The groups that `NAME = GROUP, GROUP` joins; of several attributes with such groups `COLUMN: NAME = ...`.

    Raises:
        SpecError: no attribute has these groups, or several have them.
    """
    head, _, tail = (part.strip() for part in answer.partition("="))
    column, _, name = (part.strip() for part in head.rpartition(":"))
    groups = {a.column: _cut(tail, a.rows) for a in draft.attributes if column in ("", a.column)}
    fitting = [of for of, values in groups.items() if values]
    if not name or len(fitting) != 1:
        names = ", ".join(fitting or [attribute.column for attribute in draft.attributes])
        raise SpecError(f"{answer}: expected COLUMN: NAME = GROUP, GROUP, with groups of one of {names}")
    attribute = next(attribute for attribute in draft.attributes if attribute.column == fitting[0])
    if attribute.bands:
        raise SpecError(f"{answer}: {attribute.column} is cut into bands; change its `bands` in the spec")
    before = dict(attribute.joined)
    values = tuple(v for group in groups[attribute.column] for v in before.pop(group, (group,)))
    return {groups_key(attribute.column): {**before, name: values}}


def _cut(words: str, groups: Iterable[str]) -> list[str]:
    """Names of groups with commas between, as they are spelled; empty where one is none. A name may hold commas."""
    pieces, spelled, out = words.split(","), {vocabulary.plain(group): group for group in groups}, []
    while pieces:
        sizes = range(len(pieces), 0, -1)
        size = next((n for n in sizes if vocabulary.plain(",".join(pieces[:n])) in spelled), None)
        if size is None:
            return []
        out.append(spelled[vocabulary.plain(",".join(pieces[:size]))])
        pieces = pieces[size:]
    return out


def lines(pending: Sequence[Question]) -> list[str]:
    """One line for each weight, for a screen."""
    out = []
    for weight in sorted({question.weight for question in pending}):
        of_weight = [question for question in pending if question.weight == weight]
        out.append(" ".join(question.text for question in of_weight))
    return out


def _listed(names: Iterable[str], most: int = _NAMED) -> str:
    names = list(names)
    suffix = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + suffix


def _with_rows(rows: Mapping[str, int], most: int = _SHOWN) -> str:
    return _listed([f"{value} {n:,}" for value, n in rows.items()], most)


# --------------------------------------------------------------------------------------------------------------------
# 1 and 2: the decision.


def decision_question(draft: Draft) -> Iterator[Question]:
    """Whether the column of the decision is the right one."""
    if draft.choices.given("decision.column"):
        return
    alternatives = [candidate for candidate in draft.ranked if candidate.column != draft.decision_column][:BEST]
    options = [Option(c.column, _with_rows(c.rows, 4), {"decision.column": c.column}) for c in alternatives]
    if draft.decision is None:
        best = "; ".join(f"{c.column} ({_with_rows(c.rows, 3)})" for c in draft.ranked[:BEST])
        text = f"Which column is the decision? Likeliest: {best}." if best else "Which column is the decision?"
        text = " ".join([text, *_marks_in_words(draft)])
        if draft.outcomes is not None:
            options.append(Option(MADE, "; ".join(mark.words() for mark in draft.outcomes.marks), {MADE_KEY: True}))
        yield Question("decision", ("decision.column",), 1, "decision", text, None, tuple(options))
        return
    name = draft.decision.column
    effect = ", ".join(f"{sum(draft.of_side(side).values()):,} {side}" for side in _SIDES)
    good = list(draft.of_side("favourable"))
    which = f", with {_listed(good, 4)} as favourable" if good else ""
    text = f"Is {name} the decision{which}?"
    keys: tuple[str, ...] = ("decision.column",)
    if name in draft.table.source.derive and draft.table.source.derive[name].rows:
        keys = ("decision.column", f"source.derive.{name}")
        text = " ".join([text, *_marks_in_words(draft)])
    meanings = draft.sides.meanings
    evidence = [
        Evidence(value, rows, meanings[value].side if value in meanings else "neither")
        for value, rows in draft.decision.rows.items()
    ]
    yield Question(
        "decision", keys, 1, "decision", text, YES, (Option(YES, effect), *options),
        tuple(evidence[:_SHOWN]),
    )  # fmt: skip


def _marks_in_words(draft: Draft) -> Iterator[str]:
    """What is in the columns that each mark the rows of one outcome, and how a spec names them."""
    if draft.outcomes is None:
        return
    words = " and ".join(mark.words() for mark in draft.outcomes.marks)
    is_made = any(derived.rows for derived in draft.table.source.derive.values())
    several, without = int((draft.outcomes.times > 1).sum()), int((draft.outcomes.times == 0).sum())
    of_sample = " of the sample" if draft.table.file_rows else ""
    counts = f"{several:,} rows{of_sample} have two of them, and {without:,} none"
    if is_made:
        yield f"It is made of {words}: {counts}."
        return
    in_spec = f"`derive: {{decision: {written(draft.outcomes.derived())}}}` under `source`, and `column: decision` here"
    if draft.outcomes.has_both:
        yield f"It may lie in {words}: {counts}. If so, write {in_spec}."
    else:
        yield f"{words} is empty in {without:,} rows: if that is the other side, write {in_spec}."


_NOTES: Final = {
    "not taken": (
        "approved but not taken up counts as favourable, since the lender said yes; the other reading is no decision",
        "not taken is no decision",
        "neither",
    ),
    "counteroffer": (
        "a counteroffer is no decision here; a counteroffer that is not accepted counts as denied under Regulation C",
        "counteroffer is denied",
        "unfavourable",
    ),
    "candidate declined": (
        "an offer that the candidate declined counts as favourable; the other reading is no decision",
        "declined offers are no decision",
        "neither",
    ),
    "conditional": (
        "a yes with conditions counts as favourable",
        "conditional is no decision",
        "neither",
    ),
    "preapproval": (
        "preapprovals are requests of another kind, and no decision here",
        "preapproval is decided",
        "",
    ),
    "bail": ("bail set is no decision here; bail that is not paid is a detention", "bail is detention", "unfavourable"),
}
"""Values that can be read in two ways: the reading of the draft in words, the other answer, and its side."""


def sides_question(draft: Draft) -> Iterator[Question]:
    """Which values favour the applicant, which do not, and which are no decision."""
    if draft.decision is None:
        return
    sides = {side: draft.of_side(side) for side in _SIDES}
    is_given = {side: draft.choices.given(f"decision.{side}") for side in _SIDES}
    unknown = {value: n for value, n in draft.undecided.items() if not is_given["neither"]}
    keys = [f"decision.{side}" for side in _SIDES if not is_given[side] and (sides[side] or side != "neither")]
    if is_given["favourable"]:
        plainly = len(draft.decision.rows) == len(sides["favourable"]) + len(sides["unfavourable"])
        if plainly and (is_given["unfavourable"] or _is_plain(draft)):
            return
        keys = [key for key in keys if key != "decision.unfavourable" or not is_given["unfavourable"]]
    if not keys:
        return
    words = [f"{_with_rows(sides[side])} {side}" for side in _SIDES if sides[side]]
    notes = list(dict.fromkeys(m.note for v, m in draft.sides.meanings.items() if m.note and v in draft.decision.rows))
    extra = [_NOTES[note][0] for note in notes if note in _NOTES]
    if draft.sides.why == "limit":
        extra.append("the value above the limit is taken as favourable")
    if unknown:
        extra.append(f"no word tells what {_with_rows(unknown)} means: no decision until you say")
    name = draft.decision.column
    head = (
        f"Are the sides of {name} right?" if draft.sides.has_both else f"Which values of {name} favour the applicant?"
    )
    text = " ".join([head, "; ".join(words) + ".", *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in extra)])
    options = [Option(YES, "; ".join(words))] if draft.sides.has_both else []
    options += _other_sides(draft, sides, notes)
    if len(draft.decision.rows) == 2 or not draft.sides.has_both:
        options += [
            Option(value, f"{value} favours the applicant", {"decision.favourable": (value,)})
            for value in list(draft.decision.rows)[:_SHOWN]
            if value not in sides["favourable"]
        ]
    evidence = [
        Evidence(_spellings(draft, value), rows, side if value not in unknown else "neither, until it is answered")
        for side in _SIDES
        for value, rows in sides[side].items()
    ]
    default = YES if draft.sides.has_both else None
    yield Question("sides", tuple(keys), 2, "sides", text, default, tuple(options), tuple(evidence))


def _is_plain(draft: Draft) -> bool:
    """Whether every denial is a plain word for one."""
    denials = list(draft.of_side("unfavourable"))
    plain_words = [
        v
        for v in denials
        if ((m := vocabulary.meaning(v)) is not None and m.side == "unfavourable")
        or vocabulary.plain(v) in vocabulary.answers("no") | vocabulary.answers("yes")
    ]
    return len(plain_words) == len(denials)


def _other_sides(draft: Draft, sides: Mapping[Side, Mapping[str, int]], notes: Sequence[str]) -> Iterator[Option]:
    """The answers that read some values the other way."""
    for note in notes:
        if note not in _NOTES or not _NOTES[note][2]:
            continue
        _, answer, other = _NOTES[note]
        values_moved = [
            v for v, m in draft.sides.meanings.items() if m.note == note and draft.decision and v in draft.decision.rows
        ]
        settings = {f"decision.{side}": tuple(v for v in sides[side] if v not in values_moved) for side in _SIDES}
        settings[f"decision.{other}"] = (*settings[f"decision.{other}"], *values_moved)
        if settings["decision.favourable"] and settings["decision.unfavourable"]:
            yield Option(answer, f"{_listed(values_moved)}: {other}", settings)
    if draft.sides.has_both:
        turned = {
            "decision.favourable": tuple(sides["unfavourable"]),
            "decision.unfavourable": tuple(sides["favourable"]),
            "decision.neither": tuple(sides["neither"]),
        }
        yield Option("the other way round", "swapping the sides turns every result around", turned)


def _spellings(draft: Draft, value: str) -> str:
    """All spellings of a value, the most frequent first."""
    column = draft.table.columns[draft.decision_column]
    texts = sorted((t for t, v in column.printed.items() if v == value), key=lambda t: -column.counts[t])
    return _listed(dict.fromkeys(texts), 4) or value


# --------------------------------------------------------------------------------------------------------------------
# 3 and 4: people.


def people_question(draft: Draft) -> Iterator[Question]:
    """Whether these are the protected attributes."""
    if draft.choices.given("protected"):
        return
    excluded = [name for name in draft.left_people if name not in (a.column for a in draft.attributes)]
    evidence = [
        *(Evidence(a.column, sum(a.rows.values()), _groups_in_words(a)) for a in draft.attributes),
        *(Evidence(name, None, "describes people; left out") for name in excluded),
    ]
    births = {entry.name: entry.why for entry in draft.entries if entry.name in excluded and "of birth" in entry.why}
    if not draft.attributes:
        possible = _possible(draft)
        hint = f" Columns of a few values: {_listed(possible)}." if possible else ""
        text = f"Which column tells the groups? None names a protected attribute (race, sex, age ...).{hint}"
        columns_of_few = tuple(Option(name, "", {"protected": (name,)}) for name in possible)
        yield Question("protected", ("protected.0",), 3, "people", text, None, columns_of_few)
        return
    names = [a.column for a in draft.attributes]
    text = f"Protected: {', '.join(names)}?"
    cut = [a.column for a in draft.attributes if a.bands == BANDS]
    if cut:
        ages = next(a for a in draft.attributes if a.bands == BANDS)
        read = f"is read as the age at {ages.at} and" if ages.at else "is"
        text += f" {cut[0]} {read} cut at 40 (ADEA) and 62 (Regulation B): {_with_rows(ages.rows)}."
        text += f" {ages.missing:,} rows have no age." if ages.at and ages.missing else ""
    if excluded:
        listed = [f"{name} ({births[name]})" if name in births else name for name in excluded]
        text += f" Left out, as they describe people too: {_listed(listed)}."
    options = [Option(YES, "; ".join(f"{a.column}: {_groups_in_words(a)}" for a in draft.attributes))]
    if len(names) > 1:
        options += [
            Option(f"without {name}", f"{name} is left out", {"protected": tuple(n for n in names if n != name)})
            for name in names
        ]
    keys = tuple(f"protected.{i}" for i in range(len(names)))
    yield Question("protected", keys, 3, "people", text, YES, tuple(options), tuple(evidence))


def _groups_in_words(attribute: Attribute) -> str:
    return _with_rows(attribute.rows)


def _possible(draft: Draft) -> list[str]:
    """Columns that could be cut into groups."""
    return [
        name
        for name, column in draft.table.columns.items()
        if name != draft.decision_column
        and column.form in ("category", "few numbers")
        and 2 <= len(column.values) <= 10
    ][:_NAMED]


def reference_question(draft: Draft) -> Iterator[Question]:
    """Which group the others of an attribute are compared with."""
    pending = [(i, a) for i, a in enumerate(draft.attributes) if not a.reference_is_given and a.rows]
    if not pending:
        return
    of_sample = " in the sample" if draft.table.file_rows else ""
    parts, options, evidence = [], [Option(YES)], []
    for _, attribute in pending:
        good = attribute.favourable
        alternatives = sorted((g for g in attribute.rows if g != attribute.reference), key=lambda g: -good.get(g, 0))
        beside = f", {alternatives[0]} {good.get(alternatives[0], 0):,}" if alternatives else ""
        parts.append(
            f"{attribute.column} with {attribute.reference} ({attribute.why_reference}; favourable{of_sample}: "
            f"{good.get(attribute.reference, 0):,}{beside})"
        )
        evidence += [
            Evidence(
                f"{attribute.column}: {group}", attribute.rows[group], f"{good.get(group, 0):,} favourable{of_sample}"
            )
            for group in (attribute.reference, *alternatives[:3])
        ]
        options += [
            Option(f"{attribute.column}: {group}", "", {f"protected.{attribute.column}.reference": group})
            for group in alternatives[:3]
        ]
    keys = tuple(f"protected.{i}.reference" for i, _ in pending)
    text = f"Compared with the right groups? {'; '.join(parts)}."
    yield Question("reference", keys, 4, "reference", text, YES, tuple(options), tuple(evidence))


def groups_question(draft: Draft) -> Iterator[Question]:
    """Small groups, and people with several answers."""
    keys, parts, evidence, options = [], [], [], [Option(YES)]
    for i, attribute in enumerate(draft.attributes):
        if attribute.small:
            keys.append(f"protected.{i}.reported_only")
            parts.append(
                f"of {attribute.column} fewer than {FEWEST} people each: {_listed(attribute.small)}; they are reported "
                "and not judged, unless you join some"
            )
            if len(attribute.small) > 1:
                options.append(_join_of_small(attribute))
            evidence += [
                Evidence(f"{attribute.column}: {g}", attribute.rows[g], "reported only") for g in attribute.small
            ]
        if attribute.several:
            keys.append(f"protected.{i}.groups")
            parts.append(
                f"several answers in {attribute.column} ({_listed(attribute.several, 3)}) are the group `several`"
            )
    if parts:
        text = f"Groups: {'; '.join(parts)}."
        yield Question("groups", tuple(keys), 4, "groups", text, YES, tuple(options), tuple(evidence))


def _join_of_small(attribute: Attribute) -> Option:
    """The answer by which the small groups of an attribute are one."""
    small, before = attribute.small, dict(attribute.joined)
    values = tuple(value for group in small for value in before.pop(group, (group,)))
    name, rows = " or ".join(small) if len(small) <= _FEW else "other groups", sum(attribute.rows[g] for g in small)
    still = "" if rows >= FEWEST else ": still reported and not judged"
    effect = f"{_listed(small)} are one group, {name}, of {rows:,} people{still}"
    return Option(f"join those of {attribute.column}", effect, {groups_key(attribute.column): {**before, name: values}})


# --------------------------------------------------------------------------------------------------------------------
# 5: rows.


def row_questions(draft: Draft) -> Iterator[Question]:
    """What the form of the file, a second file, equal rows and missing cells do to the rows."""
    for doubt in draft.table.doubts:
        evidence = tuple(Evidence(what, rows) for what, rows in doubt.evidence)
        yield Question(doubt.key, doubt.keys, 5, "rows", doubt.text, YES, (Option(YES),), evidence)
    yield from duplicate_question(draft)
    yield from missing_question(draft)


def duplicate_question(draft: Draft) -> Iterator[Question]:
    """Rows that equal another one, and ids of several rows."""
    rows = draft.table.repeated or int(draft.table.repeats.sum())
    shared = columns.shared_ids(draft.table, draft.decision_column)
    parts: list[str] = []
    options = [Option(YES)]
    if draft.repeats == "first" and rows:
        parts.append(f"{rows:,} rows equal another one in every cell and in {draft.row_id}: each is counted once")
        options.append(Option("keep all", f"{rows:,} rows more", {"source.intake.repeats": "all"}))
    elif rows and draft.row_id is None and rows > _REPEATED * draft.table.rows:
        parts.append(f"{rows:,} rows equal another one in every cell: all are counted, as no column identifies a row")
        options.append(Option("count each once", f"{rows:,} rows fewer", {"source.intake.repeats": "first"}))
    if shared is not None and draft.row_id is None:
        name, ids, of_rows = shared
        parts.append(
            f"{ids:,} values of {name} stand twice or more, at {of_rows:,} rows that differ: are they the same "
            "applications? All are counted; with `row_id` they would be refused"
        )
    if parts and not draft.choices.given("source.intake.repeats"):
        keys = ("source.intake.repeats", *(("row_id",) if shared is not None and draft.row_id is None else ()))
        text = f"{'; '.join(parts)}."
        yield Question("duplicates", keys, 5, "rows", text[0].upper() + text[1:], YES, tuple(options))


def missing_question(draft: Draft) -> Iterator[Question]:
    """Rows that are left out because a feature is missing, by group."""
    if not draft.is_whole:
        return
    decided = int(draft.split.decided.sum())
    complete_rows = int(columns.complete(draft.table, draft.features, draft.split).sum())
    if not decided or (complete_rows >= _COMPLETE * decided and not draft.losses):
        return
    of_sample = " of the sample" if draft.table.file_rows else ""
    parts = [f"{complete_rows:,} of {decided:,} rows{of_sample} have every feature, and the others are left out"]
    parts += [loss.words() for loss in draft.losses]
    causes = list(dict.fromkeys(cause for loss in draft.losses for cause in loss.causes[:1]))
    if not causes:
        shares = {name: draft.table.columns[name].missing_share for name in draft.features}
        causes = [max(shares, key=lambda name: shares[name])]
    options = [
        Option(YES),
        *(Option(f"without {c}", f"{c} is no feature", {f"columns.{c}.role": "excluded"}) for c in causes),
    ]
    evidence = [
        Evidence(name, draft.table.columns[name].absent_rows, "missing")
        for name in draft.features
        if draft.table.columns[name].absent.any()
    ]
    text = f"{'; '.join(parts)}. Fewer features leave out fewer rows."
    yield Question("missing", ("missing",), 5, "rows", text, YES, tuple(options), tuple(evidence[:_SHOWN]))


# --------------------------------------------------------------------------------------------------------------------
# 6 to 8: columns.


def number_question(draft: Draft) -> Iterator[Question]:
    """Cells that are read by a guess: marks, codes for missing, few numbers."""
    pending = {entry.name: entry.doubt for entry in draft.entries if entry.doubt and not _is_settled(draft, entry.name)}
    if not pending:
        return
    keys = tuple(f"columns.{name}" for name in pending)
    few = [name for name, doubt in pending.items() if doubt.endswith("read as categories")]
    doubts = {name: doubt.removeprefix(f"{name}: ").removesuffix(".") for name, doubt in pending.items()}
    words = [f"{name}: {doubt}" for name, doubt in doubts.items() if name not in few]
    if few:
        words.append(f"few whole numbers, read as categories: {_listed(few)}")
    text = f"Cells read by a guess: {_listed(words, 4)}."
    evidence: list[Evidence] = []
    options = [Option(YES)]
    for name in pending:
        column = draft.table.columns[name]
        if column.number is not None:
            evidence += [Evidence(f"{name}: {s.reading}", s.rows, f"sum {s.total}") for s in column.number.evidence]
            recipe = column.number.recipe
            if column.number.evidence and recipe.decimal:
                other = "." if recipe.decimal == "," else ","
                settings = {
                    f"source.intake.columns.{name}.decimal": other,
                    f"source.intake.columns.{name}.thousands": (recipe.decimal,),
                }
                options.append(Option(f"{name}: {other} before decimals", "", settings))
        if zeros := columns.doubtful_zeros(column):
            evidence.append(Evidence(f"{name}: 0", zeros, "a number"))
            codes = (*column.missing_codes, "0")
            options.append(Option(f"{name}: 0 is missing", "", {f"source.intake.columns.{name}.codes": codes}))
        if column.missing_codes:
            rows = int(column.absent.sum())
            span = pending[name]
            evidence.append(Evidence(f"{name}: {_listed(column.missing_codes)}", rows, span))
            options.append(Option(f"{name}: no codes", "", {f"source.intake.columns.{name}.codes": ()}))
    yield Question("numbers", keys, 6, "cells", text, YES, tuple(options[:20]), tuple(evidence[:40]))


def _is_settled(draft: Draft, name: str) -> bool:
    prefix = f"source.intake.columns.{name}."
    return not draft.choices.is_review and any(key.startswith(prefix) for key in draft.choices.settings)


def spelling_question(draft: Draft) -> Iterator[Question]:
    """Values of nearly the same spelling: they are never joined."""
    places = {a.column: f"protected.{i}" for i, a in enumerate(draft.attributes)}
    if draft.decision is not None:
        places[draft.decision.column] = "decision.favourable"
    places |= {e.name: f"columns.{e.name}" for e in draft.entries if e.type == "nominal" and not e.excluded}
    keys, parts, evidence = [], [], []
    for name, key in places.items():
        values = draft.table.columns[name].values
        if draft.table.columns[name].form != "category" or len(values) > _NEAR_VALUES:
            continue
        pairs = near_pairs(values)
        if pairs:
            keys.append(key)
            parts += [f"{p.rare} ({p.rare_rows:,}) beside {p.frequent} ({p.frequent_rows:,}) in {name}" for p in pairs]
            evidence += [Evidence(f"{name}: {p.rare}", p.rare_rows, f"another value than {p.frequent}") for p in pairs]
    if parts:
        text = f"Values of nearly one spelling stay apart: {_listed(parts, 3)}."
        yield Question("spellings", tuple(keys), 6, "cells", text, YES, (Option(YES),), tuple(evidence))


def later_question(draft: Draft) -> Iterator[Question]:
    """Columns that are left out as known after the decision."""
    after = [entry for entry in draft.entries if entry.reason == "after"]
    if after:
        text = f"Left out as known only after the decision: {_listed(e.name for e in after)}?"
        yield Question(
            "after", tuple(f"columns.{e.name}" for e in after), 7, "columns", text, YES,
            (Option(YES), *_back(after)), tuple(Evidence(e.name, None, e.why) for e in after),
        )  # fmt: skip


def left_question(draft: Draft) -> Iterator[Question]:
    """Columns that are left out as unreadable, and features that are too many."""
    excluded = [entry for entry in draft.entries if entry.reason in ("text", "missing", "units", "nested", "place")]
    if excluded:
        text = f"Left out as free text, mostly missing or places: {_listed(e.name for e in excluded)}?"
        yield Question(
            "left", tuple(f"columns.{e.name}" for e in excluded), 8, "columns", text, YES,
            (Option(YES), *_back(excluded)), tuple(Evidence(e.name, None, e.why) for e in excluded),
        )  # fmt: skip
    features = draft.features
    if len(features) > columns.MOST_FEATURES:
        best = set(columns.best(draft.table, features, draft.split))
        alternatives = {f"columns.{name}.role": "excluded" for name in features if name not in best}
        text = f"{len(features):,} features stay; the {columns.MOST_FEATURES} that tell most would do."
        option = Option(
            f"the best {columns.MOST_FEATURES}", f"{len(alternatives):,} columns are left out", alternatives
        )
        yield Question("features", ("columns",), 8, "columns", text, YES, (Option(YES), option))


def _back(entries: Sequence[columns.Entry]) -> Iterator[Option]:
    for entry in entries[:_SHOWN]:
        yield Option(f"{entry.name} is a feature", "", {f"columns.{entry.name}.role": "feature"})


# --------------------------------------------------------------------------------------------------------------------
# 9 to 12: year, weights, completeness, limits.


def year_question(draft: Draft) -> Iterator[Question]:
    """The year, where no column is certain of it."""
    year = draft.year
    if not year.why or draft.choices.given("year"):
        return
    options = [Option(YES, f"year {year.value}")]
    options += [
        Option(str(other), f"{n:,} rows", {"year": other}) for other, n in year.rows.items() if other != year.value
    ]
    evidence = tuple(Evidence(str(other), n) for other, n in year.rows.items())
    yield Question("year", ("year",), 9, "year", f"Year {year.value}: {year.why}.", YES, tuple(options), evidence)


def weight_question(draft: Draft) -> Iterator[Question]:
    """Weights of rows, by which no audit counts."""
    weights = [entry.name for entry in draft.entries if entry.reason == "weight"]
    if weights:
        text = f"{_listed(weights)} weighs the rows and is left out: an audit counts each row once. Right?"
        yield Question(
            "weight", tuple(f"columns.{name}" for name in weights), 10, "weights", text, YES,
            (Option(YES), *(Option(f"{n} is a feature", "", {f"columns.{n}.role": "feature"}) for n in weights)),
        )  # fmt: skip


def verdict_questions(draft: Draft) -> Iterator[Question]:
    """Whether the columns are complete, and the limits."""
    if not draft.choices.given("verdicts.columns_complete"):
        text = "Does the table hold every column that was decided by? No is assumed."
        options = (Option("no"), Option("yes", "", {"verdicts.columns_complete": True}))
        yield Question("columns_complete", ("verdicts.columns_complete",), 11, "columns", text, "no", options)
    text = "Would you defend the limits? They are fixed before the run."
    yield Question("limits", ("verdicts.limits",), 12, "limits", text, YES, (Option(YES),))


def _joined(groups: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The groups of a spec that join values; those of several answers are drafted again."""
    return {name: tuple(map(str, values)) for name, values in groups.items() if len(values) > 1 and name != SEVERAL}


def settings_of(spec: Mapping[str, Any]) -> Choices:
    """The choices that a written spec holds, each of them a question still."""
    decision, source = spec.get("decision") or {}, spec.get("source") or {}
    settings: dict[str, Any] = {}
    if decision.get("column") not in (None, "CHECK"):
        settings["decision.column"] = str(decision["column"])
        for side in _SIDES:
            if decision.get(side):
                settings[f"decision.{side}"] = tuple(decision[side])
    attributes = [p for p in spec.get("protected") or () if p.get("columns") and p["columns"] != ["CHECK"]]
    if attributes:
        settings["protected"] = tuple(str(p["columns"][0]) for p in attributes if len(p["columns"]) == 1)
        settings |= {f"protected.{p['columns'][0]}.reference": str(p["reference"]) for p in attributes}
        settings |= {groups_key(str(p["columns"][0])): _joined(p["groups"]) for p in attributes if p.get("groups")}
    if isinstance(spec.get("year"), int):
        settings["year"] = spec["year"]
    intake = source.get("intake") or {}
    if intake.get("repeats"):
        settings["source.intake.repeats"] = intake["repeats"]
    for name, entry in (spec.get("columns") or {}).items():
        role = (entry or {}).get("role", "feature")
        settings[f"columns.{name}.role"] = "excluded" if role == "excluded" else "feature"
    return Choices(settings, frozenset(), is_review=True)
