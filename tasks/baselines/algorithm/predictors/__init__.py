"""Counterfactually fair predictors of other papers."""
