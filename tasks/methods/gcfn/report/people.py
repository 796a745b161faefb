"""Who would be decided on otherwise: by the model's score now, and by each mediator as it is.

A share of a whole group hides where in it the decisions lie that would change. No line is about anybody: a band has at
least so many people that a share of them says something. Who they are is in the findings, which are restricted.
"""

from collections.abc import Iterator

from tasks.methods.gcfn.report import bands
from tasks.methods.gcfn.report.bands import LEAST, Sorted, Told, end_words
from tasks.methods.gcfn.report.lookups import Mediated
from tasks.reporting.charts.vega import ACCENT, WARM
from tasks.reporting.material import Shown, listed
from tasks.reporting.numbers import count, value
from tasks.reporting.section import Figure, Swatch, TableView

FLIPS, LARGE = "flip_share_by_band", "large_change_share_by_band"
MEASURES = {
    FLIPS: Shown("share decided otherwise as a member of another group, by band", "rate"),
    LARGE: Shown("share whose score would move far, by band", "rate"),
}
GLOSSARY = {
    "band": "a range of scores or of a mediator, with round ends, or one of its categories, in which applicants are "
    "counted",
    "large change of the score": "one above a limit that about one in twenty of all applicants exceeds",
}
_TITLE = "Who would be decided on otherwise"


def found(m: Mediated) -> list[Sorted]:
    """Every group that was sorted."""
    return bands.sorted_by(m.material, m.view, _told(m))


def _told(m: Mediated) -> tuple[Told, ...]:
    flips = Told(FLIPS, Swatch("decided otherwise", ACCENT, shape="circle"))
    return flips, Told(LARGE, Swatch(f"score moves by more than {_limit(m)}", WARM, shape="diamond"))


def _limit(m: Mediated) -> str:
    return next((end_words(each.said["above"]) for each in m.view.all(LARGE)), "–")


def words(m: Mediated) -> tuple[str, ...]:
    """What bands are, and what the two shares mean."""
    several = " by the network under which most of the group are" if m.settings.several else ""
    return (
        "Applicants are sorted by what they are now: by the model's score, and by each mediator. For every band stands "
        f"the share of its own applicants who would be decided on otherwise{several}, and the share whose score would "
        f"move by more than {_limit(m)}: about one in twenty of all applicants have a larger change. Bands have round "
        f"ends and about a fifth of all applicants each; where a group has fewer than {LEAST} in one, it is joined "
        "with the next, and rare categories are told together. Groups too small for two bands are left out.",
    )


def figures(m: Mediated) -> tuple[Figure, ...]:
    """By score, then by each mediator: a panel for every group."""
    caption = (
        "Share of the applicants of each band who would be decided on otherwise, and whose score would move far; with "
        "intervals. Decisions change near the model's limit whatever is imagined: a band next to it flips "
        "more often, and that alone says nothing of the group."
    )
    return bands.figures(found(m), _told(m), m.view, _TITLE, caption)


def tables(m: Mediated) -> tuple[TableView, ...]:
    """The numbers of the figures."""
    note = (
        "Applicants: of the band. Of these: how many would be decided on otherwise; a dash where members of the "
        "reference group count with the mean over several other groups. In brackets: intervals. Names are in "
        "no report: the restricted findings have them."
    )
    title = f"{_TITLE}, by {m.view.attribute}: the numbers of the figures"
    return (bands.table(found(m), _told(m), title, note),)


def readings(m: Mediated) -> tuple[str, ...]:
    """For every group the band in which most would be decided on otherwise, by each thing it is sorted by."""
    told: dict[str, list[str]] = {}
    for each in found(m):
        told.setdefault(each.group, []).extend(_most(each, m.minimum))
    return tuple(
        f"{group} would be decided on otherwise most often where {listed(said)}."
        for group, said in told.items()
        if said
    )


def _most(each: Sorted, minimum: int) -> Iterator[str]:
    known = {
        band: flips
        for band, (flips, _) in each.bands.items()
        if flips is not None and flips.value is not None and (flips.n or 0) >= minimum
    }
    if len(known) > 1 and any(flips.value for flips in known.values()):
        band, most = max(known.items(), key=lambda one: one[1].value or 0.0)
        yield f"{each.by} is {band} ({value(most, 'rate')} of {count(most.n or 0)})"
