"""Charts of CST's chapter: the causal graph, and panels of shares, settings and shifts."""
