"""Functions that move elements and compute nothing: shapes, order, joining, cutting."""

# ruff: noqa: F403

from mlc.frontend.functions.shape.joining import *
from mlc.frontend.functions.shape.moving import *
from mlc.frontend.functions.shape.views import *
