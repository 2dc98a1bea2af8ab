"""The documentation site, made of docstrings, the READMEs, the pages in `docs` and the examples.

    python -m mlc.tools.site -o site
"""
