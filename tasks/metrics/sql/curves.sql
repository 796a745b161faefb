-- The points of curves, a row a point: weighted means of tallies, and aggregates, each beside the mean and the range of
-- what was drawn of it. `tail` is the share of draws beyond one end of the range; `enough` of them have to be finite.
WITH summed AS (
    SELECT
        method, decision_maker, protected_attribute, "group", subgroup, measure, parameters,
        sum(value * "count") AS total,
        sum("count")::DOUBLE AS n,
        (sum("count") FILTER (value IS NOT NULL))::DOUBLE AS defined,
        (coalesce(sum("count") FILTER (value = 1), 0))::DOUBLE AS ones,
        coalesce(bool_and("share" AND value IN (0, 1)), true) AS is_share
    FROM tallies
    WHERE "count" > 0
    GROUP BY ALL
),
own AS (
    SELECT
        * EXCLUDE (total, ones, is_share, defined),
        total / defined AS value,
        CASE WHEN is_share THEN ones END AS events,
        CASE WHEN is_share THEN defined END AS of,
        '' AS note,
        0 AS place
    FROM summed
    UNION ALL BY NAME
    SELECT
        method, decision_maker, protected_attribute, "group", subgroup, measure, parameters,
        n::DOUBLE AS n, value, events::DOUBLE AS events, NULL AS of, coalesce(reason, '') AS note,
        place
    FROM aggregates
),
beside AS (
    SELECT
        method, decision_maker, protected_attribute, "group", measure, parameters, 0 AS subgroup,
        avg(value) FILTER (isfinite(value)) AS drawn,
        (count(*) FILTER (isfinite(value)))::DOUBLE AS draws,
        count(*) FILTER (isfinite(value)) >= $enough * count(*) AS has_range,
        quantile_cont(value, [$tail, 1 - $tail]) FILTER (isfinite(value)) AS ends,
        any_value(reason) AS drawn_note
    FROM draws
    GROUP BY ALL
)
SELECT
    own.*,
    drawn,
    draws,
    CASE WHEN has_range THEN ends[1] END AS drawn_low,
    CASE WHEN has_range THEN ends[2] END AS drawn_high,
    coalesce(drawn_note, '') AS drawn_note
FROM own
LEFT JOIN beside USING (method, decision_maker, protected_attribute, "group", subgroup, measure, parameters)
