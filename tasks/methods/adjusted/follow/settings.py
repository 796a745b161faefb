"""Settings of following applications beyond the decision, and whether an audit does it."""

from typing import Final

from schemas.audit.column import LENDER, PLACE, set_by_decision
from schemas.audit.spec import AuditSpec
from schemas.blocks import is_through
from schemas.vintages import folder_of
from tasks.ingest.stage import IngestSettings, ingest_settings
from tasks.methods.adjusted.adjust.settings import ControlBlock, blocks_of, cluster_of
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.methods.adjusted.tables import PRICES

ACTIONS: Final = {
    **{"1": "originated", "2": "not_accepted", "3": "denied", "4": "withdrawn", "5": "incomplete", "6": "purchased"},
    **{"7": "preapproval_denied", "8": "preapproval_not_accepted"},
}
NUMBERS: Final = (*PRICES, "loan_amount_usd", "loan_term", "debt_to_income_pct")
CODES: Final = (
    *("loan_purpose_raw", "loan_purpose", "lien_status", "loan_type", "open_end_line_of_credit", "hoepa_status"),
    *("occupancy", "business_or_commercial_purpose"),
    *("conforming_loan_limit", "application_month", "debt_to_income_ratio", "exempt"),
    *("denial_reason_1", "denial_reason_2", "denial_reason_3", "denial_reason_4"),
)
"""Columns that are read besides those of the spec, where the source has them."""


class FollowSettings(IngestSettings):
    """What decides the rows, and how their prices are compared."""

    codes_decide: bool
    ladder: AdjustedSettings
    blocks: tuple[ControlBlock, ...]
    """Of the ladder, without places."""
    through: tuple[str, ...]
    """Columns that hold discretion: branch, officer, channel."""
    cluster: str | None
    """Column whose rows hang together; errors of prices count it where it has several values."""
    level: float
    fewest: int
    """Fewest loans of a group, and of the reference group, for a price."""
    market: str
    """The vintage whose other lenders are peers; empty without one."""


def follows(spec: AuditSpec) -> bool:
    """Whether the audit follows applications beyond the decision."""
    ladder = spec.methods.of(AdjustedSettings)
    if ladder is None or ladder.practice == "never":
        return False
    return ladder.practice == "always" or spec.source.kind == "hmda"


def follow_settings(spec: AuditSpec) -> FollowSettings | None:
    """The stage's settings; None where nothing is followed."""
    ladder = spec.methods.of(AdjustedSettings)
    if ladder is None or not follows(spec):
        return None
    through = through_of(spec, ladder)
    own_blocks = [block for block in blocks_of(spec, ladder) if block.name != PLACE]
    blocks = [
        ControlBlock(name=block.name, columns=names)
        for block in own_blocks
        if (names := tuple(n for n in block.columns if n not in through and not set_by_decision(n)))
    ]
    vintage = spec.source.vintage_file
    return FollowSettings(
        **vars(ingest_settings(spec)),
        codes_decide=spec.codes_decide,
        ladder=ladder,
        blocks=tuple(blocks),
        through=through,
        cluster=cluster_of(spec, ladder),
        level=spec.bootstrap.level,
        fewest=spec.verdicts.minimum_n,
        market="" if vintage is None else "/".join(folder_of(vintage)),
    )


def through_of(spec: AuditSpec, ladder: AdjustedSettings) -> tuple[str, ...]:
    """Columns that hold discretion: those of the spec, else by their names."""
    of_name = tuple(n for n in spec.kept() if is_through(n) and n not in LENDER)
    return of_name if ladder.through is None else ladder.through
