"""Everybody whom a published count counts, in this run and in earlier ones.

What becomes of the counts is decided in ``publish.algorithm``; tables are made of it beside this folder.
"""
