"""Convertible: the part of a module that changes the dtype and the device of its tensors."""

from __future__ import annotations

from typing import Any, TypeVar

from mlc.frontend.dtypes import destination
from mlc.frontend.functions.create import zeros
from mlc.frontend.functions.elementwise import cast_to
from mlc.frontend.location import user_loc
from mlc.frontend.memory_format import check_memory_format
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError
from mlc.nn.hierarchy import Hierarchy

M = TypeVar("M", bound="Convertible")


def _cast(x: Tensor, dtype: Any) -> Tensor:
    in_kernels = isinstance(x, Tracer) or x.is_cuda or x.composite
    return cast_to(x, dtype) if in_kernels else Tensor(x.array.astype(dtype.dtype))


class Convertible(Hierarchy):
    """Base of modules: conversion of parameters and buffers to another dtype, and to another device."""

    def to(self: M, target: Any = None, dtype: DTypeLike = None, *, device: Any = None,
           non_blocking: bool = False, memory_format: Any = None) -> M:
        """Convert the parameters and buffers of floats to a dtype, and bring all parameters and buffers to a device.

        Args:
            target: A dtype, a device, or a tensor that has both.
            dtype: Floating-point dtype.
            device: Device, such as "cuda:1".
            non_blocking: Ignored.
            memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

        Returns:
            The module itself.

        Raises:
            UserTypeError: The dtype is not of floats, or `target` is neither dtype nor device (MLC0342).
            UserError: The device is unknown (MLC0337).

        Example:
            >>> nn.Linear(2, 3).to(mlc.float16)
            Linear(in_features=2, out_features=3, bias=True)
        """
        check_memory_format(memory_format)
        wanted, device_name = destination(target, dtype, device)
        if device_name is not None:
            self._assign_state({name: x.to_device(device_name) for name, _, _, x in self._state_by_name()})
        if wanted is None:
            return self
        if not wanted.is_floating_point:
            raise UserTypeError(f"a module of {wanted} could not be trained", code="MLC0342", loc=user_loc(),
                                hint="use float16, bfloat16, float32 or float64")

        self._assign_state({name: _cast(x, wanted) for name, _, _, x in self._state_by_name()
                            if x.dtype.is_floating_point})
        return self

    def cpu(self: M) -> M:
        """Bring the module to the CPU's memory: `to("cpu")`.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> layer.cpu().weight.is_cpu
            True
        """
        return self.to("cpu")

    def cuda(self: M, device: Any = None) -> M:
        """Bring the module to a GPU: `to("cuda")`.

        Args:
            device: Number or name of the device; None for the first.

        Returns:
            The module itself.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> layer = layer.cuda() if mlc.cuda.is_available() else layer
        """
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def float(self: M) -> M:
        """Convert floats to float32: `to(mlc.float32)`.

        Example:
            >>> nn.Linear(2, 3).float().weight.dtype
            mlc.float32
        """
        return self.to("float32")

    def double(self: M) -> M:
        """Convert floats to float64: `to(mlc.float64)`.

        Example:
            >>> nn.Linear(2, 3).double().weight.dtype
            mlc.float64
        """
        return self.to("float64")

    def share_memory(self: M) -> M:
        """Move the parameters and buffers to memory that other processes can share: `Tensor.share_memory_` of each.

        Processes that `mlc.multiprocessing` starts then see each other's updates. Keys of layers such as `Dropout` stay
        those of each process.

        Returns:
            The module itself.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> layer.share_memory() is layer
            True
        """
        for _, _, attribute, x in self._state_by_name():
            if attribute != "key" or x.dtype.name != "uint32":
                x.share_memory_()
        return self

    def half(self: M) -> M:
        """Convert floats to float16: `to(mlc.float16)`.

        Example:
            >>> nn.Linear(2, 3).half().weight.dtype
            mlc.float16
        """
        return self.to("float16")

    def bfloat16(self: M) -> M:
        """Convert floats to bfloat16: `to(mlc.bfloat16)`.

        Example:
            >>> nn.Linear(2, 3).bfloat16().weight.dtype
            mlc.bfloat16
        """
        return self.to("bfloat16")

    def type(self: M, dst_type: DTypeLike) -> M:
        """Convert all parameters and buffers to a dtype, integers too.

        Args:
            dst_type: Floating-point dtype.

        Returns:
            The module itself.

        Raises:
            UserTypeError: The dtype is not of floats (MLC0342).

        Example:
            >>> nn.Linear(2, 3).type(mlc.float64).weight.dtype
            mlc.float64
        """
        self.to(dst_type)
        wanted, _ = destination(dst_type, None, None)
        self._assign_state({name: _cast(x, wanted) for name, _, _, x in self._state_by_name()
                            if not x.dtype.is_floating_point})
        return self

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Bring all parameters and buffers to a device without their elements, which become zeros.

        Args:
            device: Device, such as "cuda:1".
            recurse: Whether those of the modules inside are brought too.

        Returns:
            The module itself.

        Example:
            >>> nn.Linear(2, 3).to_empty(device="cpu").weight.shape
            (3, 2)
        """
        self._assign_state({name: zeros(x.shape, dtype=x.dtype).to(device)
                            for name, owner, _, x in self._state_by_name() if recurse or owner is self})
        return self
