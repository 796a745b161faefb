"""Peers of a lender and its market: who lends as much in the same places and products, counted over rows of HMDA.

Peers have 0.5 to 2 times the lender's applications in the cells of metropolitan area and product in which it has some
(interagency examiners compare lenders of like size; the factors are a convention). Everything is counted by DuckDB over
canonical rows, whatever their number. Scope: counts. What follows from them: ``tasks.methods.adjusted.algorithm``.
"""

# ruff: noqa: S608 names are ours, values are bound

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from schemas.audit.source import CellRule, Keep, Source
from schemas.errors import SpecError
from schemas.tables.hmda import EXEMPT_CODE
from tasks.ingest.hmda.canonical import CANONICAL, literal, quoted
from tasks.ingest.hmda.rows import LENDER, located, open_file, placed

if TYPE_CHECKING:
    import duckdb

FEWEST_TIMES, MOST_TIMES = 0.5, 2.0
"""Applications of a peer, as times those of the lender."""
AREA: Final = "coalesce(CAST(msa_md AS VARCHAR), 'outside of all in ' || coalesce(CAST(state_code AS VARCHAR), '?'))"
PRODUCT: Final = (
    "coalesce(CAST(loan_purpose AS VARCHAR), '?') || ' ' || coalesce(CAST(lien_status AS VARCHAR), '?') || ' ' || "
    "coalesce(CAST(open_end_line_of_credit AS VARCHAR), '?')"
)
"""Purpose, lien, and whether it is a line of credit."""
APPLIED: Final = "CAST(action_taken AS VARCHAR) <> '6'"
"""A loan that was bought is no application."""


@dataclass(frozen=True)
class PeerSet:
    """The peers of a lender."""

    applications: int
    """Applications of the lender in the area that was asked for; 0 where it has none."""
    peers: pa.Table
    """``lender_id``, ``applications`` and ``times``, the most alike first."""


def peers_of(connection: "duckdb.DuckDBPyConnection", rows: str, lender: str, area: str | None = None) -> PeerSet:
    """The peers of a lender.

    Args:
        connection: where the rows can be read.
        rows: canonical applications of HMDA, as a table of SQL.
        lender: its id.
        area: a metropolitan area, by its code; all areas of the lender if None.
    """
    cells = f"""
        SELECT CAST(lender_id AS VARCHAR) AS lender_id, {AREA} AS area, {PRODUCT} AS product, count(*) AS n
        FROM {rows} WHERE {APPLIED} AND ($area IS NULL OR CAST(msa_md AS VARCHAR) = $area) GROUP BY ALL
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE cells AS {cells}", {"area": area})
    query = "SELECT coalesce(sum(n), 0)::BIGINT FROM cells WHERE lender_id = $lender"
    ((applications,),) = connection.execute(query, {"lender": lender}).fetchall()
    query = f"""
        WITH own AS (SELECT area, product FROM cells WHERE lender_id = $lender),
        others AS (
            SELECT lender_id, sum(n)::BIGINT AS applications FROM cells JOIN own USING (area, product)
            WHERE lender_id <> $lender GROUP BY ALL
        )
        SELECT lender_id, applications, applications / {max(applications, 1)} AS times FROM others
        WHERE applications BETWEEN {FEWEST_TIMES} * {applications} AND {MOST_TIMES} * {applications}
        ORDER BY abs(ln(times)), lender_id
    """
    return PeerSet(applications, connection.sql(query, params={"lender": lender}).to_arrow_table())


@dataclass(frozen=True)
class Beside:
    """A lender and its peers."""

    tracts: pa.Table
    """As ``tracts`` gives them."""
    peers: int | None
    """How many there are; None where nobody said where to look."""


def keep_condition(source: Source) -> str:
    """SQL of whether ``source.keep`` keeps a canonical row; by a derived column through those that it is made from.

    Raises:
        SpecError: it keeps rows by a column of the file's own, which other lenders' rows do not have.
    """
    if column := kept_by_own_column(source):
        raise SpecError(
            f"places count rows of other lenders as well, and these have no column {column!r} to keep them by",
            ("source", "keep"),
        )
    conditions = [_keeps(name, rule, source) for name, rule in source.keep.items()]
    return " AND ".join(f"coalesce({condition}, false)" for condition in conditions) or "true"


def kept_by_own_column(source: Source) -> str:
    """The first column that ``source.keep`` needs and canonical rows do not have; empty without one."""
    needed = (c for name in source.keep for c in (source.derive[name].columns if name in source.derive else (name,)))
    return next((column for column in needed if column not in CANONICAL), "")


def _keeps(name: str, rule: Keep, source: Source) -> str:
    if derived := source.derive.get(name):
        if derived.column is not None:
            wanted_values = [value for value in derived.values if rule.present or value in rule.values]
            return _matches(derived.column, tuple(old for value in wanted_values for old in derived.values[value]))
        new = [value for value in derived.rows if rule.present or value in rule.values]
        rules = [" AND ".join(_matches(c, cells) for c, cells in derived.rows[value].items()) for value in new]
        return f"({' OR '.join(f'({rule_sql})' for rule_sql in rules) or 'false'})"
    if not rule.ranged:
        return _matches(name, "present" if rule.present else rule.values)
    cell = f"TRY_CAST({quoted(name)} AS {'DATE' if rule.of_dates else 'DOUBLE'})"
    ends = ((">=", rule.minimum), ("<=", rule.maximum))
    # a day is quoted, and DuckDB compares it as a day; a number is printed as it is
    return " AND ".join(
        f"{cell} {sign} {literal(str(end)) if rule.of_dates else end}" for sign, end in ends if end is not None
    )


def _matches(name: str, cells: CellRule) -> str:
    if cells in ("present", "absent"):
        return f"{quoted(name)} IS {'NOT ' if cells == 'present' else ''}NULL"
    text = f"CAST({quoted(name)} AS VARCHAR)"
    if EXEMPT_CODE in CANONICAL[name].codes:
        text = f"CASE {text} WHEN '{EXEMPT_CODE}' THEN 'Exempt' ELSE {text} END"
    return f"{text} IN ({', '.join(map(literal, cells)) or 'NULL'})"


def beside_peers(source: Source, peers_file: Path | None, copied: Sequence[int] = ()) -> Beside | None:
    """The one lender of a source and its peers; None of a source with several lenders, or without a name of one.

    Rows of all of them are those that ``source.keep`` keeps.

    Args:
        source: of HMDA.
        peers_file: HMDA rows of others, or of all; if None the vintage that the source is a lender's part of.
        copied: places of rows of the source, as ``hmda.rows.lay`` numbers them, that are copies and not counted.

    Raises:
        EvenhandError: as readers of HMDA, and ``keep_condition``, say.
    """
    part, condition = source.part, keep_condition(source)
    with ExitStack() as stack:
        files = [stack.enter_context(open_file(path, source.rename)) for path in located(placed(source))]
        connection = files[0].connection
        selects, before = [], 0
        for file in files:
            is_copy = f"source_row + {before} IN ({', '.join(map(str, copied)) or 'NULL'})"
            selects.append(f"SELECT * FROM {file.table(part)} WHERE NOT coalesce({is_copy}, false)")
            if len(files) > 1 and copied:
                ((rows,),) = connection.sql(f"SELECT count(*) FROM {file.table()}").fetchall()
                before += rows + len(file.unread())
        applications = f"({' UNION ALL BY NAME '.join(selects)})"
        if part is not None:
            applications = (
                f"(SELECT * FROM {applications} WHERE CAST({quoted(part.column)} AS VARCHAR) = {literal(part.value)})"
            )
        applications = f"(SELECT * FROM {applications} WHERE {condition})"
        lenders = connection.sql(f"SELECT DISTINCT CAST(lender_id AS VARCHAR) FROM {applications} LIMIT 2").fetchall()
        if len(lenders) != 1 or lenders[0][0] is None:
            return None
        lender, other_rows = lenders[0][0], ""
        if peers_file is not None:
            other_rows = stack.enter_context(open_file(peers_file)).table()
        elif part is not None and part.column == LENDER:
            other_rows = f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {file.table()}' for file in files)})"
        if not other_rows:
            return Beside(tracts(connection, applications, applications, lender, None), None)
        is_other = f"CAST(lender_id AS VARCHAR) <> {literal(lender)}"
        other_rows = f"SELECT * FROM {other_rows} WHERE {is_other} AND {condition}"
        market = f"(SELECT * FROM {applications} UNION ALL BY NAME {other_rows})"
        peers = peers_of(connection, market, lender).peers
        return Beside(tracts(connection, applications, market, lender, peers), peers.num_rows)


def tracts(
    connection: "duckdb.DuckDBPyConnection", applications: str, market: str, lender: str, peers: pa.Table | None
) -> pa.Table:
    """Applications and originations by tract, of the lender and of its peers in the lender's areas and products.

    Args:
        connection: where the rows can be read.
        applications: rows of the lender, as a table of SQL.
        market: rows of others, or of all; the lender's own are left out.
        lender: its id.
        peers: as ``peers_of`` gives them; None where there is no market.

    Returns:
        ``tract``, ``minority`` (percent), ``homes`` (of one to four units), ``applications``, ``originations``,
        ``peer_applications`` and ``peer_originations``, a row a tract of either. Rows without a tract are one row.
    """
    tract_counts = (
        "CAST(tract_fips11 AS VARCHAR) AS tract, any_value(tract_minority_pct) AS minority, "
        "any_value(tract_1_4_family_units) AS homes, count(*) AS applications, "
        "count_if(CAST(action_taken AS VARCHAR) = '1')::BIGINT AS originations"
    )
    lender_counts = f"SELECT {tract_counts} FROM {applications} WHERE {APPLIED} GROUP BY tract"
    if peers is None:
        return connection.sql(
            f"SELECT *, 0::BIGINT AS peer_applications, 0::BIGINT AS peer_originations "
            f"FROM ({lender_counts}) ORDER BY tract"
        ).to_arrow_table()
    connection.register("peers", peers)
    peer_counts = f"""
        SELECT {tract_counts} FROM {market} WHERE {APPLIED} AND CAST(lender_id AS VARCHAR) <> $lender
        AND CAST(lender_id AS VARCHAR) IN (SELECT lender_id FROM peers)
        AND ({AREA}, {PRODUCT}) IN (SELECT DISTINCT {AREA}, {PRODUCT} FROM {applications} WHERE {APPLIED})
        GROUP BY tract
    """
    query = f"""
        SELECT tract, coalesce(m.minority, t.minority) AS minority, coalesce(m.homes, t.homes) AS homes,
            coalesce(m.applications, 0)::BIGINT AS applications, coalesce(m.originations, 0)::BIGINT AS originations,
            coalesce(t.applications, 0)::BIGINT AS peer_applications,
            coalesce(t.originations, 0)::BIGINT AS peer_originations
        FROM ({lender_counts}) AS m FULL JOIN ({peer_counts}) AS t USING (tract) ORDER BY tract
    """
    return connection.sql(query, params={"lender": lender}).to_arrow_table()


FEWEST_SCREENED, FEWEST_OF_GROUP = 500, 30
"""Applications of a lender that is screened, and loans of a group whose prices are."""


def screened(connection: "duckdb.DuckDBPyConnection", rows: str) -> pa.Table:
    """Every lender with 500 applications or more: majority-minority places of it and its peers, and rate spreads.

    Places: share of applications in tracts above 50 % minority, and that of peers in the same areas and products. Both
    are means over the cells of area and product in which the minority share of tracts is known of the lender and of a
    peer, weighted by the lender's applications, so that no other mix of places is compared; ``left_out`` is the share
    of its applications in other cells.
    Prices: mean rate spread of Black and of Hispanic borrowers less that of white borrowers of the same product
    (purpose, lien, line of credit, loan type), weighted by the group's own loans; the error is that of both means. A
    single loan of a product has the variance that the group's other loans have around the means of their products, or
    that of the white loans. For screening: nothing but the product is held equal.

    DuckDB counts by lender and cell; which lenders are peers is a product of sparse matrices, as a join of all pairs of
    lenders in a cell would be a thousand times the cells.
    """
    from scipy import sparse  # loads what nobody else needs here

    cells = connection.sql(f"""
        SELECT CAST(lender_id AS VARCHAR) AS lender_id, {AREA} || ' ' || {PRODUCT} AS cell, count(*) AS n,
            count_if(tract_minority_pct > 50)::BIGINT AS inside, count(tract_minority_pct) AS known
        FROM {rows} WHERE {APPLIED} AND lender_id IS NOT NULL GROUP BY ALL
    """).to_arrow_table()
    lenders, places = (cells[name].combine_chunks().dictionary_encode() for name in ("lender_id", "cell"))
    at = lenders.indices.to_numpy(), places.indices.to_numpy()
    shape = len(lenders.dictionary), len(places.dictionary)

    def matrix(name: str) -> Any:
        return sparse.csr_matrix((cells[name].to_numpy().astype(np.float32), at), shape)

    n, inside, known = (matrix(name) for name in ("n", "inside", "known"))
    totals = np.asarray(n.sum(axis=1)).ravel()
    sized = np.flatnonzero(totals >= FEWEST_SCREENED)
    screened_cells = n[sized]
    in_cells = screened_cells.astype(bool).astype(np.float32) @ n.T.toarray()
    size = totals[sized, None]
    is_peer = (in_cells >= FEWEST_TIMES * size) & (in_cells <= MOST_TIMES * size)
    is_peer[np.arange(len(sized)), sized] = False
    peers_inside, peers_known = (counts.T.tocsr() @ is_peer.T.astype(np.float32) for counts in (inside, known))
    row, cell = screened_cells.nonzero()
    weight = np.asarray(screened_cells[row, cell]).ravel()
    own_inside, own_known = (np.asarray(counts[sized[row], cell]).ravel() for counts in (inside, known))
    is_shared = (peers_known[cell, row] > 0) & (own_known > 0)
    row, cell, weight, own_share = (
        row[is_shared],
        cell[is_shared],
        weight[is_shared],
        own_inside[is_shared] / own_known[is_shared],
    )
    weights = np.bincount(row, weight, len(sized))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.bincount(row, weight * own_share, len(sized)) / weights
        peers_share = np.bincount(row, weight * peers_inside[cell, row] / peers_known[cell, row], len(sized)) / weights
    placed = pa.table(
        {
            "lender_id": lenders.dictionary.take(pa.array(sized)),
            "applications": pa.array(totals[sized].astype(np.int64)),
            "peers": pa.array(is_peer.sum(axis=1).astype(np.int64)),
            "share": pa.array(share, from_pandas=True),
            "peers_share": pa.array(peers_share, from_pandas=True),
            "left_out": pa.array(1 - weights / totals[sized]),
        }
    )
    connection.register("placed", placed)
    query = f"""
        WITH spreads AS (
            SELECT CAST(lender_id AS VARCHAR) AS lender_id,
                {PRODUCT} || ' ' || coalesce(CAST(loan_type AS VARCHAR), '?') AS product,
                CASE WHEN CAST(derived_ethnicity AS VARCHAR) = 'Hispanic or Latino' THEN 'Hispanic'
                    WHEN CAST(derived_race AS VARCHAR) = 'Black or African American' THEN 'Black'
                    WHEN CAST(derived_race AS VARCHAR) = 'White'
                        AND CAST(derived_ethnicity AS VARCHAR) = 'Not Hispanic or Latino' THEN 'White' END AS who,
                count(*) AS n, avg(rate_spread) AS mean, var_samp(rate_spread) AS variance
            FROM {rows} WHERE CAST(action_taken AS VARCHAR) = '1' AND rate_spread IS NOT NULL GROUP BY ALL
        ),
        pooled AS (
            SELECT lender_id, who, sum((n - 1) * variance) / nullif(sum(n - 1), 0) AS variance FROM spreads
            GROUP BY ALL
        ),
        priced AS (
            SELECT g.lender_id, g.who, sum(g.n)::BIGINT AS loans, sum(g.n * (g.mean - w.mean)) / sum(g.n) AS effect,
                sqrt(sum(g.n * g.n * (coalesce(g.variance, p.variance, w.variance) / g.n + w.variance / w.n)))
                    / sum(g.n) AS se
            FROM spreads AS g
            JOIN pooled AS p ON g.lender_id = p.lender_id AND g.who = p.who
            JOIN spreads AS w ON g.lender_id = w.lender_id AND g.product = w.product AND w.who = 'White'
            WHERE g.who IN ('Black', 'Hispanic') AND w.n > 1 GROUP BY ALL HAVING sum(g.n) >= {FEWEST_OF_GROUP}
        )
        SELECT placed.*, share / nullif(peers_share, 0) AS ratio,
            b.loans AS black_loans, b.effect AS black_spread, b.se AS black_se,
            h.loans AS hispanic_loans, h.effect AS hispanic_spread, h.se AS hispanic_se
        FROM placed
        LEFT JOIN priced AS b ON b.lender_id = placed.lender_id AND b.who = 'Black'
        LEFT JOIN priced AS h ON h.lender_id = placed.lender_id AND h.who = 'Hispanic'
        ORDER BY ratio NULLS LAST, placed.lender_id
    """
    return connection.sql(query).to_arrow_table()
