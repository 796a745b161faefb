"""Pure numerical code for more than one step or method: arrays and a Generator in, arrays out.

What one step or method alone needs is in its own ``algorithm`` folder.
"""
