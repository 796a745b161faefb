"""What ``evenhand reproduce`` compares: published figures, reference outputs, and what our code obtains."""
