"""Special functions: the gamma function and its relatives, Bessel functions, and the normal distribution."""

# ruff: noqa: F403

from mlc.frontend.functions.special.airy import *
from mlc.frontend.functions.special.bessel import *
from mlc.frontend.functions.special.gamma import *
from mlc.frontend.functions.special.incomplete import *
from mlc.frontend.functions.special.normal import *
from mlc.frontend.functions.special.polynomials import *
from mlc.frontend.functions.special.waves import *
