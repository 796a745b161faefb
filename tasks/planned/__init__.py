"""The plan of measures: every measure that an audit can make, from its spec alone, with parameters and ranges.

One module per method. Parameters that depend on the data, such as the ends of bands, are left open. The plan is an
upper bound: every measure made is planned, but a group without units makes none.
"""
