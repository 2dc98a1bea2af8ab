"""Linear algebra under the names of torch.linalg: on the last two dimensions, the others a batch.

Where PyTorch raises an error for a matrix that is singular or not positive definite, results here are infinite or NaN:
compiled code does not stop in the middle. Integer and 16-bit operands are computed in float32.
"""

# ruff: noqa: F403

from mlc.frontend.functions.linalg.checked import *
from mlc.frontend.functions.linalg.factorizations import *
from mlc.frontend.functions.linalg.lapack import *
from mlc.frontend.functions.linalg.matrices import *
from mlc.frontend.functions.linalg.norms import *
from mlc.frontend.functions.linalg.powers import *
from mlc.frontend.functions.linalg.solving import *
from mlc.frontend.functions.linalg.tensors import *
