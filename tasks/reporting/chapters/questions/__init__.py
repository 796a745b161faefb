"""Pages of the questions: gap, similar, otherwise, routes, reasons.

Five parts on each: answer, picture, how sure, by group, what it cannot tell. What differs between the questions is
declared in questions.yaml (``declaration``); only the ladder and the assumed graph have code of their own. Scope:
sections of published rows. Definitions and limits of methods: ``chapters.method``. How a page looks: ``pages``.
"""
