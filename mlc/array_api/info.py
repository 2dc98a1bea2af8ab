"""The abilities of the namespace, as programs ask for them by `__array_namespace_info__`."""

from __future__ import annotations

from typing import Any

import mlc
from mlc.array_api.data_types import DTYPES, isdtype
from mlc.frontend.device import CPU
from mlc.frontend.device import device as Device
from mlc.frontend.devices import as_device
from mlc.frontend.dtypes import DType

__all__ = ["__array_namespace_info__"]


class NamespaceInfo:
    """Devices, dtypes and abilities of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """The abilities that are optional in the standard.

        Returns:
            A dict: boolean indices and data-dependent shapes are there, and numbers of dimensions are not limited.

        Example:
            >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
            True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of tensors that are made without one.

        Returns:
            The CPU.

        Example:
            >>> xp.__array_namespace_info__().default_device()
            'cpu'
        """
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of tensors that are made without one.

        Args:
            device: A device; all have the same.

        Returns:
            A dict with "real floating", "complex floating", "integral" and "indexing".

        Raises:
            UserError: There is no such device (MLC0337).

        Example:
            >>> xp.__array_namespace_info__().default_dtypes()["indexing"]
            mlc.int64
        """
        as_device(device)
        return {"real floating": mlc.float32, "complex floating": mlc.complex64, "integral": mlc.int64,
                "indexing": mlc.int64}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes of the standard.

        Args:
            device: A device; all have the same.
            kind: A kind of dtypes, as of `isdtype`, or a tuple of them; all by default.

        Returns:
            A dict of dtypes by their names.

        Raises:
            UserError: There is no such device (MLC0337), or no such kind (MLC0881).

        Example:
            >>> xp.__array_namespace_info__().dtypes(kind="real floating")
            {'float32': mlc.float32, 'float64': mlc.float64}
        """
        as_device(device)
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}

    def devices(self) -> tuple[Device, ...]:
        """The devices of this machine.

        Returns:
            Tuple of the CPU and its GPUs.

        Example:
            >>> "cpu" in xp.__array_namespace_info__().devices()
            True
        """
        return (CPU, *(Device("cuda", i) for i in range(mlc.cuda.device_count())))


def __array_namespace_info__() -> NamespaceInfo:
    """The object that tells programs the abilities of the namespace.

    Returns:
        An object with the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and `dtypes`.

    Example:
        >>> xp.__array_namespace_info__().default_device()
        'cpu'
    """
    return NamespaceInfo()
