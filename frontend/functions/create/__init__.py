"""Functions that create tensors from sizes and numbers.

Outside a recorded function their elements are written once, by numpy; inside one they are an operation.
"""

# ruff: noqa: F403

from mlc.frontend.functions.create.data import *
from mlc.frontend.functions.create.filled import *
from mlc.frontend.functions.create.public import *
from mlc.frontend.functions.create.ranges import *
