-- Approvals and denials of every decision maker by group, as tallies: one row per value (0 or 1) with its count.
SELECT
    'outcomes' AS method,
    d.decision_maker,
    m.protected_attribute,
    m."group",
    0::INTEGER AS subgroup,
    k.measure,
    '{}' AS parameters,
    true AS headline,
    (d.favourable = k.event)::DOUBLE AS value,
    count(*) AS "count"
FROM decisions AS d
JOIN memberships AS m USING (row_id)
CROSS JOIN (VALUES ('approval_rate', true), ('denial_rate', false)) AS k(measure, event)
GROUP BY ALL
ORDER BY ALL
