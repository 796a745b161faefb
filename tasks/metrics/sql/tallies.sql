-- The tallies of all methods, gathered: one row per statistic and group, its values and counts as lists.
SELECT
    method,
    decision_maker,
    protected_attribute,
    "group",
    subgroup,
    measure,
    parameters,
    bool_or(headline) AS headline,
    bool_or(compared) AS compared,
    bool_or(share) AS share,
    list(coalesce(value, 'NaN'::DOUBLE) ORDER BY value NULLS LAST) AS "values",
    list("count" ORDER BY value NULLS LAST) AS counts
FROM tallied
WHERE "count" > 0
GROUP BY method, decision_maker, protected_attribute, "group", subgroup, measure, parameters
ORDER BY method, decision_maker, protected_attribute, "group", subgroup, measure, parameters
