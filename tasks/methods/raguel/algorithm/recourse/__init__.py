"""Recourse of one applicant: what may change, the nearest accepted point, and its cost.

Lists and their re-ranking are in ``tasks.methods.raguel.algorithm.ranking``.
"""
