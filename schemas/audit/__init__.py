"""The audit spec: the keys of its file, its reading, and the messages about what is wrong in it.

Settings of one method are in ``methods``. Limits are held against the measures to come in ``tasks.metrics.limits``.
"""
