"""The measures that an audit will make, told from its spec alone: by method, with their parameters and ranges.

What only the data tell, such as the ends of bands, is left open. A group that has nothing to measure has no row all
the same: what is planned here is what can be made, and nothing else ever is.
"""
