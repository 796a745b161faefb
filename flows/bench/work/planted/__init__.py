"""Lenders whose true effects are known, drawn and audited: once in memory, once as a file, and many times over."""
