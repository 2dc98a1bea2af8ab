"""cuda-python's module of the driver, as far as mlc uses it, on a fake device: handles, statuses, pinned memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from mlc.backends.cuda.device import Fill, Launch
from tests.fake_device import FakeDevice

DONE, INVALID_VALUE, OUT_OF_MEMORY, INVALID_PTX, ILLEGAL_ADDRESS = 0, 1, 2, 218, 700
NAMES = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 100: "CUDA_ERROR_NO_DEVICE",
         218: "CUDA_ERROR_INVALID_PTX", 700: "CUDA_ERROR_ILLEGAL_ADDRESS", 803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}


class Option(IntEnum):
    CU_JIT_INFO_LOG_BUFFER = 3
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4
    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class DeviceAttribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


class FunctionAttribute(IntEnum):
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class Parameters(SimpleNamespace):
    """The parameters of a node of a graph."""


class Bindings:
    """The module. `fail` names a call and the status that it gives from now on."""

    CUjit_option, CUdevice_attribute, CUfunction_attribute = Option, DeviceAttribute, FunctionAttribute
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=0, CU_EVENT_DISABLE_TIMING=2)
    CUDA_KERNEL_NODE_PARAMS = CUDA_MEMSET_NODE_PARAMS = Parameters
    CUstream = CUdeviceptr = int

    def __init__(self, device: FakeDevice | None = None, count: int = 1) -> None:
        self.device, self.count = device or FakeDevice(), count
        self.fail: dict[str, int] = {}
        self.event_status = DONE
        self.calls: list[str] = []
        self.pinned: list[Any] = []
        self.shared: list[int] = []
        self.contexts: list[str] = []                      # of the one thread that there is, as a stack
        self.modules: list[Any] = []

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not name.startswith("cu"):
            return found

        def call(*args: Any) -> Any:
            self.calls.append(name)
            if status := self.fail.get(name):
                return (status, None)
            out = found(*args)
            return out if isinstance(out, tuple) else (DONE,) if out is None else (DONE, out)

        return call

    # -- devices --------------------------------------------------------------------------------------------------
    def cuInit(self, flags: int) -> None: assert flags == 0
    def cuGetErrorName(self, status: int) -> bytes: return NAMES[status].encode()
    def cuGetErrorString(self, status: int) -> bytes: return b"what the driver says"
    def cuDeviceGetCount(self) -> int: return self.count
    def cuDeviceGet(self, ordinal: int) -> int: return ordinal
    def cuDevicePrimaryCtxRetain(self, device: int) -> str: return f"context {device}"
    def cuCtxSetCurrent(self, context: str) -> None: self.contexts[-1:] = [context]
    def cuCtxPushCurrent(self, context: str) -> None: self.contexts.append(context)
    def cuCtxPopCurrent(self) -> str: return self.contexts.pop()
    def cuCtxSynchronize(self) -> None: self.device.synchronize(True)
    def cuDeviceGetName(self, size: int, device: int) -> bytes: return b"a fake GPU\0\0\0"

    def cuDeviceGetAttribute(self, attribute: DeviceAttribute, device: int) -> int:
        return {75: self.device.architecture // 10, 76: self.device.architecture % 10, 97: 200_000}[attribute]

    # -- order ----------------------------------------------------------------------------------------------------
    def cuStreamCreate(self, flags: int) -> int: return 7
    def cuStreamSynchronize(self, stream: int) -> None: self.device.synchronize()
    def cuStreamWaitEvent(self, stream: int, event: object, flags: int) -> None: self.device.publish(stream)
    def cuEventCreate(self, flags: int) -> object: return object()
    def cuEventRecord(self, event: object, stream: int) -> None: pass
    def cuEventSynchronize(self, event: object) -> None: pass
    def cuEventQuery(self, event: object) -> Any: return (self.event_status,)
    def cuEventDestroy(self, event: object) -> None: pass
    def cuEventElapsedTime(self, start: object, end: object) -> float: return 1500.0

    # -- memory ---------------------------------------------------------------------------------------------------
    def cuMemAlloc(self, size: int) -> Any:
        address = self.device.allocate(size)
        return (OUT_OF_MEMORY, None) if address is None else address

    def cuMemFree(self, address: int) -> None: self.device.free(address)
    def cuMemGetInfo(self) -> Any: return (DONE, *self.device.memory_info())

    def cuMemHostAlloc(self, size: int, flags: int) -> int:
        self.pinned.append((ctypes.c_uint8 * size)())
        return ctypes.addressof(self.pinned[-1])

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self.device.bytes(target, size)[:] = host(source, size)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        host(target, size)[:] = self.device.bytes(source, size)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self.device.copy(target, source, size)

    def _fill(self, address: int, value: int, width: int, count: int) -> None:
        place = ctypes.c_uint64(address)
        self.device.run(Fill(value, width, count, ctypes.addressof(place)))

    def cuMemsetD8Async(self, at: int, value: int, count: int, stream: int) -> None: self._fill(at, value, 1, count)
    def cuMemsetD16Async(self, at: int, value: int, count: int, stream: int) -> None: self._fill(at, value, 2, count)
    def cuMemsetD32Async(self, at: int, value: int, count: int, stream: int) -> None: self._fill(at, value, 4, count)

    # -- code -----------------------------------------------------------------------------------------------------
    def cuModuleLoadDataEx(self, code: bytes, count: int, options: list[Option], values: list[Any]) -> Any:
        assert code.endswith(b"\0") and count == len(options) == len(values)
        given = dict(zip(options, values))
        if not code.startswith(b"module"):
            log = b"ptxas application ptx input, line 3; fatal"
            given[Option.CU_JIT_ERROR_LOG_BUFFER][: len(log)] = log
            return (INVALID_PTX, None)
        self.modules.append(self.device.load(code[:-1]))
        return self.modules[-1]

    def cuModuleUnload(self, module: Any) -> None: self.modules.remove(module)

    def cuModuleGetFunction(self, module: Any, name: bytes) -> Any: return self.device.kernel(module, name.decode())
    def cuFuncGetAttribute(self, attribute: FunctionAttribute, kernel: Any) -> int: return 10 * int(attribute)

    def cuFuncSetAttribute(self, kernel: Any, attribute: FunctionAttribute, value: int) -> None:
        assert attribute is FunctionAttribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.shared.append(value)

    def cuLaunchKernel(self, *args: Any) -> None:
        kernel, gx, gy, gz, bx, by, bz, shared, _, parameters, extra = args
        assert extra == 0
        self.device.run(Launch(kernel, str(kernel.sym_name), (gx, gy, gz), (bx, by, bz), shared, parameters))

    # -- graphs ---------------------------------------------------------------------------------------------------
    def cuGraphCreate(self, flags: int) -> list[Any]: return []

    def cuGraphAddKernelNode(self, graph: list[Any], before: list[int], count: int, node: Parameters) -> int:
        assert before == ([len(graph) - 1] if graph else []) and count == len(before)
        graph.append(self._node(node))
        return len(graph) - 1

    def cuGraphAddMemsetNode(self, graph: list[Any], before: list[int], count: int, node: Parameters,
                             context: str) -> int:
        return int(self.cuGraphAddKernelNode(graph, before, count, node)[1])  # type: ignore[index]

    def _node(self, node: Parameters) -> Callable[[], None]:
        """Work of a graph node with its current parameters."""
        if hasattr(node, "dst"):
            assert node.height == 1
            return lambda: self._fill(node.dst, node.value, node.elementSize, node.width)
        step = Launch(node.func, str(node.func.sym_name), (node.gridDimX, node.gridDimY, node.gridDimZ),
                      (node.blockDimX, node.blockDimY, node.blockDimZ), node.sharedMemBytes, node.kernelParams)
        values = [(address, ctypes.c_uint64.from_address(address).value) for address in self._words(step)]

        def run() -> None:
            for address, value in values:
                ctypes.c_uint64.from_address(address).value = value
            self.device.run(step)

        return run

    def _words(self, step: Launch) -> list[int]:
        count = self.device.words(step.kernel)
        return [ctypes.c_uint64.from_address(step.parameters + 8 * i).value for i in range(count)]

    def cuGraphInstantiate(self, graph: list[Any], flags: int) -> list[Any]: return list(graph)

    def cuGraphExecKernelNodeSetParams(self, made: list[Any], node: int, parameters: Parameters) -> None:
        made[node] = self._node(parameters)

    def cuGraphExecMemsetNodeSetParams(self, made: list[Any], node: int, parameters: Parameters, context: str) -> None:
        made[node] = self._node(parameters)

    def cuGraphLaunch(self, made: list[Any], stream: int) -> None:
        for run in made:
            run()

    def cuGraphExecDestroy(self, made: list[Any]) -> None: pass
    def cuGraphDestroy(self, graph: list[Any]) -> None: pass


def host(address: int, size: int) -> Any:
    """Memory of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
