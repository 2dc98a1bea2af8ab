"""Functions of one element at a time, by family.

They broadcast, as in numpy: shapes are aligned from the last dimension, and a dimension of 1, or one that is absent,
counts as often as the other has it. Operands are tensors, arrays or Python numbers, and are promoted as in PyTorch: the
result has the smallest dtype that holds those of the tensors; a 0-d tensor, and after it a Python number, counts only
if it is of a higher kind (bool < integer < float). A function that needs floats makes float32 of integers and bools.
NaN among the operands gives NaN where nothing else is said. All are differentiable almost everywhere, but for those
that give bools or integers.

Errors that all of them have: an operand that is no tensor (UserError, MLC0345 or MLC0353), shapes that do not broadcast
(MLC0111), an integer that does not fit in 64 bits (MLC0348), and uint64 with a signed integer (MLC0341).
"""

# ruff: noqa: F403

from mlc.frontend.functions.elementwise.arithmetic import *
from mlc.frontend.functions.elementwise.bits import *
from mlc.frontend.functions.elementwise.comparison import *
from mlc.frontend.functions.elementwise.complex_numbers import *
from mlc.frontend.functions.elementwise.exponential import *
from mlc.frontend.functions.elementwise.parts import *
from mlc.frontend.functions.elementwise.rounding import *
from mlc.frontend.functions.elementwise.selection import *
from mlc.frontend.functions.elementwise.sign import *
