"""The denial ladder: one regression a rung, each with one more block of control columns.

Scope: design matrices, fits, effects and their standard errors. What an unseen column could do: the folder beside it.
"""
