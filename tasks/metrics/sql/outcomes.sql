-- Approvals and denials of every decision maker by group, as tallies: one row per value (0 or 1) with its count.
-- The lender decided on every application, those included that lack a covariate; the model only on complete ones.
WITH decided AS (
    SELECT 'lender' AS decision_maker, row_id, favourable FROM applications
    UNION ALL
    SELECT decision_maker, row_id, favourable FROM decisions WHERE decision_maker <> 'lender'
)
SELECT
    'outcomes' AS method,
    d.decision_maker,
    m.protected_attribute,
    m."group",
    0::INTEGER AS subgroup,
    k.measure,
    '{}' AS parameters,
    true AS headline,
    true AS compared,
    true AS share,
    (d.favourable = k.event)::DOUBLE AS value,
    count(*) AS "count"
FROM decided AS d
JOIN memberships AS m USING (row_id)
CROSS JOIN (VALUES ('approval_rate', true), ('denial_rate', false)) AS k(measure, event)
GROUP BY ALL
ORDER BY ALL
