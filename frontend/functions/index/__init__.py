"""Functions that pick elements: indexing, gathering, embedding.

Negative indices count from the end. An index out of range is found when the code runs, and raised as an IndexError
that names the line.
"""

# ruff: noqa: F403

from mlc.frontend.functions.index.lookup import *
from mlc.frontend.functions.index.picking import *
from mlc.frontend.functions.index.subscript import *
