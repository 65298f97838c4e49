"""All there is about a robot on one page: `write_report`.

`findings.py` computes, `sections.py` writes, `treepicture.py` draws the tree, `html.py` has the
tags.
"""
