"""Words that may leave the lake: errors and stages without cells or exact counts of few, checks by published figures.

Scope: texts. Whether they go to the server, a log or an alert: the folder above.
"""
