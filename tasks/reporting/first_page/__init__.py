"""First page of a report: facts, rules, result, page."""
