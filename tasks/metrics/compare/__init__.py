"""Stage ``compare``: trains the mitigations that the spec names on the same folds and measures them on held-out rows.

Scope: the stage, its settings and the folds. Mitigations: the methods that offer them (``Method.mitigations``).
"""
