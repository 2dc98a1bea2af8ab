"""Layers that take the number of features or channels of their input from the first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError
from mlc.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from mlc.nn.linear import Linear
from mlc.nn.module import Module

Ints = int | Sequence[int]


class LazyModuleMixin(Module):
    """Base of lazy layers: the size is 0 until the first call, or until a state is loaded.

    Then it becomes a layer of another class. Its parameters stay the same tensors, so an optimizer may be made before.

    Attributes:
        cls_to_become: The class that it stands for.

    Example:
        >>> layer = nn.LazyLinear(3)
        >>> layer.cls_to_become, layer.has_uninitialized_params()
        (<class 'mlc.nn.linear.Linear'>, True)
    """

    cls_to_become: ClassVar[Any]
    _size_name: ClassVar[str]

    def _begin(self, settings: dict[str, Any]) -> None:
        self.cls_to_become.__init__(self, **{self._size_name: 0}, **settings)
        self._settings, self._handle = settings, self.register_load_state_dict_pre_hook(_take_size)

    def _size_of(self, x: Any) -> int:
        """The number of features or channels of an input."""
        raise NotImplementedError

    def _size_in(self, saved: dict[str, Any]) -> int:
        """The number of features or channels of a saved state."""
        raise NotImplementedError

    def has_uninitialized_params(self) -> bool:
        """Whether the layer has not been called yet."""
        return True

    def initialize_parameters(self, input: Any) -> None:
        """Become a layer for inputs like this one.

        Args:
            input: Input of a call.

        Raises:
            UserError: A function is being recorded (MLC0741).
        """
        if state.trace is not None:
            raise UserError(f"{type(self).__name__} is first called in a function that is recorded", code="MLC0741",
                            loc=user_loc(), hint="call the model once before, as in model(x)")
        x = create.asarray(input)
        try:
            size = self._size_of(x)
        except IndexError:
            raise UserError(f"{type(self).__name__}: the input has {x.ndim} dimensions", code="MLC0364",
                            loc=user_loc()) from None
        self._become(size)

    def _become(self, size: int) -> None:
        made = self.cls_to_become(**{self._size_name: size}, **self._settings)
        self._handle.remove()
        del self._settings, self._handle
        self.__class__ = self.cls_to_become
        for name, new in vars(made).items():
            held = vars(self).get(name)
            if type(held) is Tensor and type(new) is Tensor:
                held.replace_elements(new.to(held.dtype).to(held.device))
            else:
                object.__setattr__(self, name, new)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if not args and "input" not in keywords:
            return super().__call__(*args, **keywords)
        self.initialize_parameters(args[0] if args else keywords["input"])
        return self(*args, **keywords)                     # of its new class


def _take_size(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    saved = {name.removeprefix(prefix): x for name, x in state_dict.items() if name.startswith(prefix)}
    if "weight" in saved or "running_mean" in saved:
        module._become(module._size_in(saved))


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` whose in_features is the size of the last dimension of its first input.

    Args:
        out_features: Size of the last dimension of the result.
        bias: Whether a bias is added.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), or a size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyLinear(3)
        >>> _ = layer(mlc.ones(4, 2))
        >>> layer
        Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become = Linear
    _size_name = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: DTypeLike = None) -> None:
        self._begin({"out_features": out_features, "bias": bias, "device": device, "dtype": dtype})

    def _size_of(self, x: Any) -> int:
        return int(x.shape[-1])

    def _size_in(self, saved: dict[str, Any]) -> int:
        return int(saved["weight"].shape[1])


class _LazyConv(LazyModuleMixin):
    _size_name = "in_channels"
    spatial: ClassVar[int]

    def __init__(self, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints | str = 0,
                 dilation: Ints = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 device: Any = None, dtype: DTypeLike = None) -> None:
        self._begin({"out_channels": out_channels, "kernel_size": kernel_size, "stride": stride, "padding": padding,
                     "dilation": dilation, "groups": groups, "bias": bias, "padding_mode": padding_mode,
                     "device": device, "dtype": dtype})

    def _size_of(self, x: Any) -> int:
        return int(x.shape[-1 - self.spatial])

    def _size_in(self, saved: dict[str, Any]) -> int:
        return int(saved["weight"].shape[1]) * int(self._settings["groups"])


class _LazyConvTranspose(LazyModuleMixin):
    _size_name = "in_channels"
    spatial: ClassVar[int]

    def __init__(self, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0,
                 output_padding: Ints = 0, groups: int = 1, bias: bool = True, dilation: Ints = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: DTypeLike = None) -> None:
        self._begin({"out_channels": out_channels, "kernel_size": kernel_size, "stride": stride, "padding": padding,
                     "output_padding": output_padding, "groups": groups, "bias": bias, "dilation": dilation,
                     "padding_mode": padding_mode, "device": device, "dtype": dtype})

    def _size_of(self, x: Any) -> int:
        return int(x.shape[-1 - self.spatial])

    def _size_in(self, saved: dict[str, Any]) -> int:
        return int(saved["weight"].shape[0])


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` whose in_channels is that of its first input.

    Args:
        out_channels: Number of channels of the result.
        kernel_size: Size of the window.
        stride: Distance from one window to the next.
        padding: As for `Conv1d`.
        dilation: Distance from one element of a window to the next.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        padding_mode: As for `Conv1d`.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), a setting is not allowed (MLC0360), or a
            size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyConv1d(3, 3)
        >>> _ = layer(mlc.ones(1, 2, 4))
        >>> layer.in_channels
        2
    """

    cls_to_become = Conv1d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` whose in_channels is that of its first input.

    Args:
        out_channels: Number of channels of the result.
        kernel_size: Size of the window.
        stride: Distance from one window to the next.
        padding: As for `ConvTranspose1d`.
        output_padding: Elements added on one side of the result.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        dilation: Distance from one element of a window to the next.
        padding_mode: As for `ConvTranspose1d`.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), a setting is not allowed (MLC0360), or a
            size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyConvTranspose1d(3, 3)
        >>> _ = layer(mlc.ones(1, 2, 4))
        >>> layer.in_channels
        2
    """

    cls_to_become = ConvTranspose1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` whose in_channels is that of its first input.

    Args:
        out_channels: Number of channels of the result.
        kernel_size: Size of the window.
        stride: Distance from one window to the next.
        padding: As for `Conv2d`.
        dilation: Distance from one element of a window to the next.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        padding_mode: As for `Conv2d`.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), a setting is not allowed (MLC0360), or a
            size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyConv2d(3, 3)
        >>> _ = layer(mlc.ones(1, 2, 4, 4))
        >>> layer.in_channels
        2
    """

    cls_to_become = Conv2d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` whose in_channels is that of its first input.

    Args:
        out_channels: Number of channels of the result.
        kernel_size: Size of the window.
        stride: Distance from one window to the next.
        padding: As for `ConvTranspose2d`.
        output_padding: Elements added on one side of the result.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        dilation: Distance from one element of a window to the next.
        padding_mode: As for `ConvTranspose2d`.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), a setting is not allowed (MLC0360), or a
            size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyConvTranspose2d(3, 3)
        >>> _ = layer(mlc.ones(1, 2, 4, 4))
        >>> layer.in_channels
        2
    """

    cls_to_become = ConvTranspose2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` whose in_channels is that of its first input.

    Args:
        out_channels: Number of channels of the result.
        kernel_size: Size of the window.
        stride: Distance from one window to the next.
        padding: As for `Conv3d`.
        dilation: Distance from one element of a window to the next.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        padding_mode: As for `Conv3d`.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), a setting is not allowed (MLC0360), or a
            size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyConv3d(3, 3)
        >>> _ = layer(mlc.ones(1, 2, 4, 4, 4))
        >>> layer.in_channels
        2
    """

    cls_to_become = Conv3d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` whose in_channels is that of its first input.

    Args:
        out_channels: Number of channels of the result.
        kernel_size: Size of the window.
        stride: Distance from one window to the next.
        padding: As for `ConvTranspose3d`.
        output_padding: Elements added on one side of the result.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        dilation: Distance from one element of a window to the next.
        padding_mode: As for `ConvTranspose3d`.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741), a setting is not allowed (MLC0360), or a
            size is negative (MLC0358).

    Example:
        >>> layer = nn.LazyConvTranspose3d(3, 3)
        >>> _ = layer(mlc.ones(1, 2, 4, 4, 4))
        >>> layer.in_channels
        2
    """

    cls_to_become = ConvTranspose3d
