"""The four estimators of a rung: each takes a rung and answers with one effect or two for each group.

Scope: from fits to ``Effect``, with what the reader must know of it. The fits themselves: one folder up.
"""
