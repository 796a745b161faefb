"""RAGUEL's section of the report; ``section`` has its order.

It computes nothing: numbers come from published tables. What methods share is in ``tasks.reporting``.
"""
