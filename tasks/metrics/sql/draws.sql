-- The draws, gathered: one row per statistic and group, its values as a list in the order of the draws.
SELECT
    method,
    decision_maker,
    protected_attribute,
    "group",
    measure,
    parameters,
    any_value(reason) AS reason,
    any_value(reference) AS reference,
    list(coalesce(value, 'NaN'::DOUBLE) ORDER BY draw) AS "values"
FROM draws
GROUP BY method, decision_maker, protected_attribute, "group", measure, parameters
ORDER BY method, decision_maker, protected_attribute, "group", measure, parameters
