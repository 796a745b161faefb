"""Chapters of a report that belong to no method.

A method's section is in its folder, under ``report``.
"""
