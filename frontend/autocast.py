"""Automatic mixed precision: in the scope of `autocast`, operations cast their operands as PyTorch's do.

Which operation casts to what is a field of its declaration (`operation(autocast=...)`):

lower_precision   matrix products, convolutions and attention: float32 becomes the dtype of the scope
fp32              losses, factorizations, poolings of volumes: float16 and bfloat16 become float32
fp32_on_cuda      the same, where the operands are on a GPU
none              for functions of the arguments that say which: nothing is cast
promote           joining: all operands become the widest dtype among them

(PyTorch's documentation, "Automatic Mixed Precision package", "CPU Op-Specific Behavior" and "CUDA Op-Specific
Behavior".) float64 stays. The casts are operations of their own, so that gradients arrive in the operands' dtypes.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from mlc.frontend import dtypes
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.devices import Devices
from mlc.frontend.dispatch import hold
from mlc.frontend.dtypes import DType, as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.methods import DTypeLike
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import Error, UserError

F = TypeVar("F", bound=Callable[..., Any])


class Autocast(NamedTuple):
    """The autocast state of a thread in which some device casts: the dtype of each kind of device, None for none."""

    cpu: DType | None
    cuda: DType | None


class Setting(NamedTuple):
    """Setting of `autocast` for a kind of device."""

    enabled: bool
    dtype: DType
    cache: bool = True


class _Settings(threading.local):
    def __init__(self) -> None:
        self.cpu, self.cuda = Setting(False, dtypes.bfloat16), Setting(False, dtypes.float16)


_settings = _Settings()
_lock = threading.Lock()
_threads = 0
process: dict[str, bool | None] = {"autocast": None}
"""Whether a thread casts: the guard of the fast paths of compiled functions, which know no threads."""


def _set(device_type: str, setting: Setting) -> None:
    """Change the setting of a kind of device in this thread."""
    global _threads
    setattr(_settings, device_type, setting)
    cpu, cuda = (s.dtype if s.enabled else None for s in (_settings.cpu, _settings.cuda))
    casts = cpu is not None or cuda is not None
    with _lock:
        _threads += casts - (state.autocast is not None)
        process["autocast"] = True if _threads else None
    hold(casts - (state.autocast is not None))
    state.autocast = Autocast(cpu, cuda) if casts else None


def _kind(device_type: str) -> str:
    if device_type not in ("cpu", "cuda"):
        raise UserError(f"there are no devices of type {device_type!r}", code="MLC0782", loc=user_loc(),
                        hint='use "cpu" or "cuda"')
    return device_type


@contextmanager
def autocast_of(active: Autocast | None) -> Iterator[None]:
    """Context in which a function is recorded for calls under an autocast state."""
    before, state.autocast = state.autocast, active
    try:
        yield
    finally:
        state.autocast = before


def on_device(device: str) -> Autocast | None:
    """The autocast state of this thread as far as it concerns a device."""
    active = state.autocast
    if active is None:
        return None
    cpu, cuda = (active.cpu, None) if device == "cpu" else (None, active.cuda)
    return None if cpu is None and cuda is None else Autocast(cpu, cuda)


def cast_operands(policy: str, args: Sequence[Any], keywords: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of an operation as its policy casts them in the current scope."""
    active: Any = state.autocast
    found = list(_tensors((*args, *keywords.values())))
    if not found:
        return args, keywords
    recorded = isinstance(found[0], Tracer)
    device = ("cuda" if active.cpu is None else "cpu") if recorded else found[0].device.type
    lower = getattr(active, device, None)
    if lower is None or policy == "none" or (policy == "fp32_on_cuda" and device != "cuda"):
        return args, keywords
    target = lower
    if policy != "lower_precision" and (policy != "promote" or any(x.dtype is dtypes.float32 for x in found)):
        target = dtypes.float32

    def cast(x: Any) -> Any:
        if isinstance(x, Tensor):
            eligible = x.dtype.is_floating_point and x.dtype is not dtypes.float64 and x.dtype is not target
            return OPERATIONS["cast"](x, target) if eligible else x
        return type(x)(map(cast, x)) if type(x) in (list, tuple) else x

    return tuple(map(cast, args)), {name: cast(x) for name, x in keywords.items()}


def _tensors(xs: Any) -> Iterator[Tensor]:
    for x in xs:
        if isinstance(x, Tensor):
            yield x
        elif type(x) in (list, tuple):
            yield from _tensors(x)


class autocast:
    """Context manager and decorator in whose scope operations run in the precision that suits them.

    Matrix products, convolutions and attention cast their operands to `dtype`, operations that need the range or the
    precision cast them to float32, and all others work in the dtypes that they are given. Parameters stay float32, and
    so do their gradients. A backward pass needs no scope: it runs in the dtypes of the forward pass. Scopes may be
    nested, and `enabled=False` is a scope without casts.

    It works in a function that is compiled or differentiated, and around its call, which is then compiled for this
    state.

    Args:
        device_type: "cpu" or "cuda": the device of the tensors that are cast.
        dtype: float16 or bfloat16; None for that of `get_autocast_dtype`.
        enabled: Whether operations cast.
        cache_enabled: As in PyTorch, without effect: the cast of a weight is part of the operation that uses it.

    Raises:
        UserError: The type of device is unknown (MLC0782).

    Example:
        >>> layer, x = nn.Linear(4, 2), mlc.ones(3, 4)
        >>> with mlc.autocast("cpu", dtype=mlc.bfloat16):
        ...     y = layer(x)
        ...     loss = nn.functional.mse_loss(y, mlc.zeros(3, 2))
        >>> y.dtype, loss.dtype
        (mlc.bfloat16, mlc.float32)
        >>> loss.backward()
        >>> layer.weight.grad.dtype
        mlc.float32
    """

    def __init__(self, device_type: str, dtype: DTypeLike = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        self.device = _kind(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else as_dtype(dtype)
        if enabled and self.fast_dtype not in (dtypes.float16, dtypes.bfloat16):
            warnings.warn(f"autocast is disabled: it casts to float16 or bfloat16, not to {self.fast_dtype}",
                          stacklevel=3)
            enabled = False
        if enabled and device_type == "cuda" and not has_gpu():
            warnings.warn("autocast is disabled: there is no GPU", stacklevel=3)
            enabled = False
        self._enabled = bool(enabled)
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._before: list[Setting] = []                   # of each entry: a context manager may be entered twice

    def __enter__(self) -> autocast:
        before = getattr(_settings, self.device)
        self._before.append(before)
        dtype = self.fast_dtype if self.fast_dtype in (dtypes.float16, dtypes.bfloat16) else before.dtype
        _set(self.device, Setting(self._enabled, dtype, self._cache_enabled))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _set(self.device, self._before.pop())

    def __call__(self, f: F) -> F:
        """The function `f`, run in this scope."""
        @functools.wraps(f)
        def in_scope(*args: Any, **keywords: Any) -> Any:
            with self:
                return f(*args, **keywords)

        return in_scope  # type: ignore[return-value]


def has_gpu() -> bool:
    """Whether there is a GPU that mlc can use."""
    try:
        Devices.check("cuda")
    except Error:
        return False
    return True


@coded
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operations on a kind of device cast their operands in this thread.

    Args:
        device_type: "cpu" or "cuda".

    Returns:
        A bool.

    Raises:
        UserError: The type of device is unknown (MLC0782).

    Example:
        >>> with mlc.autocast("cpu"):
        ...     mlc.is_autocast_enabled("cpu")
        True
    """
    return bool(getattr(_settings, _kind(device_type)).enabled)


@coded
def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that operations in the scope of `autocast` cast to, if none is given.

    Args:
        device_type: "cpu" or "cuda".

    Returns:
        A dtype: bfloat16 for the CPU and float16 for GPUs, unless a scope or `set_autocast_dtype` has another.

    Raises:
        UserError: The type of device is unknown (MLC0782).

    Example:
        >>> mlc.get_autocast_dtype("cpu")
        mlc.bfloat16
    """
    found: DType = getattr(_settings, _kind(device_type)).dtype
    return found


@coded
def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Set whether operations on a kind of device cast their operands, in this thread and from now on.

    Args:
        device_type: "cpu" or "cuda".
        enabled: Whether they do.

    Raises:
        UserError: The type of device is unknown (MLC0782).

    Example:
        >>> mlc.set_autocast_enabled("cpu", True)
        >>> (mlc.ones(2, 2) @ mlc.ones(2, 2)).dtype
        mlc.bfloat16
        >>> mlc.set_autocast_enabled("cpu", False)
    """
    _set(device_type, getattr(_settings, _kind(device_type))._replace(enabled=bool(enabled)))


@coded
def set_autocast_dtype(device_type: str, dtype: DTypeLike) -> None:
    """Set the dtype that operations in the scope of `autocast` cast to, in this thread and from now on.

    Args:
        device_type: "cpu" or "cuda".
        dtype: float16 or bfloat16.

    Raises:
        UserError: The type of device is unknown, or the dtype is another (MLC0782).

    Example:
        >>> mlc.set_autocast_dtype("cpu", mlc.float16)
        >>> mlc.get_autocast_dtype("cpu")
        mlc.float16
        >>> mlc.set_autocast_dtype("cpu", mlc.bfloat16)
    """
    wanted = as_dtype(dtype)
    if wanted not in (dtypes.float16, dtypes.bfloat16):
        raise UserError(f"autocast casts to float16 or bfloat16, not to {wanted}", code="MLC0782", loc=user_loc())
    _set(device_type, getattr(_settings, _kind(device_type))._replace(dtype=wanted))


@coded
def is_autocast_cache_enabled() -> bool:
    """Whether the current scope of `autocast` was entered with `cache_enabled`.

    Returns:
        A bool.

    Example:
        >>> with mlc.autocast("cpu", cache_enabled=False):
        ...     mlc.is_autocast_cache_enabled()
        False
    """
    return all(s.cache for s in (_settings.cpu, _settings.cuda))


coded_methods(autocast, ("__init__",))
