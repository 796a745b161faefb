"""Textbooks' regressions of the Boston Fed study, and golden values of the ladder, held against our code."""
