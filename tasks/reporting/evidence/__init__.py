"""Evidence pages: every table and chart of one method, made of the blocks that its ``report.yaml`` declares.

Each kind of block has its module, which makes a table with all its rows; ``budget`` cuts it, ``page`` puts the page
together. No module knows a method.
"""
