"""Functions that pick elements: indexing, gathering, embedding.

Negative indices count from the end. Indices are checked at run time; one that is out of range raises an IndexError with
the line.
"""

# ruff: noqa: F403

from mlc.frontend.functions.index.lookup import *
from mlc.frontend.functions.index.picking import *
from mlc.frontend.functions.index.subscript import *
