"""Modes of autograd under the names of torch.autograd.grad_mode.

`no_grad` and `inference_mode` record no graph, `enable_grad` records one again, and `set_grad_enabled` does either.
Each is a context manager and a decorator; they apply to the thread that enters them.

Example:
    >>> x = mlc.tensor(2.0, requires_grad=True)
    >>> with mlc.autograd.grad_mode.no_grad():
    ...     (x * x).requires_grad
    False
"""

from __future__ import annotations

from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.autograd import grad_mode
from mlc.frontend.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_multithreading_enabled", "no_grad",
           "set_grad_enabled", "set_multithreading_enabled"]

is_grad_enabled = coded(grad_mode.is_grad_enabled)


class set_multithreading_enabled:
    """Set whether backward may use several threads; as a context manager, restore it at the end.

    Backward goes through the nodes in the thread of its caller in any case; kernels have threads of their own
    (`mlc.set_num_threads`).

    Args:
        mode: Whether it may.

    Example:
        >>> with mlc.autograd.set_multithreading_enabled(False):
        ...     mlc.autograd.is_multithreading_enabled()
        False
    """

    enabled = True

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), set_multithreading_enabled.enabled
        set_multithreading_enabled.enabled = self.mode

    def __enter__(self) -> None:
        set_multithreading_enabled.enabled = self.mode

    def __exit__(self, *raised: object) -> None:
        set_multithreading_enabled.enabled = self.before


def is_multithreading_enabled() -> bool:
    """Whether backward may use several threads.

    Returns:
        A bool: the mode that `set_multithreading_enabled` has set, which is True at first.

    Example:
        >>> mlc.autograd.is_multithreading_enabled()
        True
    """
    return set_multithreading_enabled.enabled


for _class in (enable_grad, inference_mode, no_grad, set_grad_enabled):
    coded_methods(_class, ("__init__",))
