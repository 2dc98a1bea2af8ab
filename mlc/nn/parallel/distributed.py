"""DistributedDataParallel: one model on all ranks, each with its part of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mlc import distributed
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Array
from mlc.distributed.calls import Collective, array_of, check_together, write_all
from mlc.distributed.groups import resolved
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError
from mlc.nn.dropout import Keyed
from mlc.nn.module import Module
from mlc.nn.parallel.reducer import Reducer
from mlc.nn.synchronized_normalization import SyncBatchNorm


class DistributedDataParallel(Module):
    """A model whose gradients are the averages over all ranks, each of which computes those of its part of the data.

    The parameters and buffers of rank 0 are given to all when it is made, and its buffers before each forward. While
    backward goes on, gradients that are complete are sent in buckets; after it, `grad` has the averages, the same bits
    on all ranks. Keys of layers such as `Dropout` stay those of each rank: seed the ranks differently for
    different masks. A compiled model may be wrapped, but not this one compiled.

    Args:
        module: The model; the parameters that require a gradient now are averaged.
        device_ids: None, or the one GPU that the model is on.
        output_device: None, or that GPU.
        dim: Not used.
        broadcast_buffers: Whether rank 0's buffers are given to all before a forward, unless the forward before was
            one without gradients, or within `no_sync`: so one rank alone may evaluate several batches.
        init_sync: Whether the ranks compare their models, and get the parameters and buffers of rank 0 now.
        process_group: The group; None for all ranks.
        bucket_cap_mb: Size of a bucket in MiB; None for 25. The first one has 1 at most.
        find_unused_parameters: Whether parameters may have no gradient in a pass, on some ranks or on all; otherwise
            that is an error, which names them.
        check_reduction: Not used.
        gradient_as_bucket_view: Not used: gradients are parts of the buckets in any case, and copies on a GPU.
        static_graph: Whether all passes are alike; parameters may then have no gradient, as in PyTorch.

    Returns:
        A module with the model as `module`, which takes the same arguments.

    Raises:
        RankError: The ranks have different models, or a parameter has no gradient (MLC0979), or the model is not on
            the one device that is named, or has `SyncBatchNorm` and unused parameters (MLC0976). Calls and backward
            raise what collectives do.

    Example:
        >>> from mlc.backends.transport import threads
        >>> def gradient(rank):
        ...     mlc.distributed.init_process_group()
        ...     model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ...     model(mlc.tensor([[float(rank)]])).sum().backward()
        ...     return model.module.weight.grad.item()
        >>> threads.run(2, gradient)
        [0.5, 0.5]
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False,
                 static_graph: bool = False) -> None:
        super().__init__()
        self.module = module
        self.process_group = resolved(process_group)
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        found = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not found:
            raise RankError("DistributedDataParallel: no parameter of the model requires a gradient", code="MLC0979",
                            loc=user_loc(), hint="use the model itself")
        arrays = {name: array_of(p, "DistributedDataParallel") for name, p in module.named_parameters()}
        check_together("DistributedDataParallel", list(arrays.values()))
        for given in (*(device_ids or ()), *(() if output_device is None else (output_device,))):
            if (place := f"cuda:{given}" if isinstance(given, int) else str(given)) != str(found[0][1].device):
                raise RankError(f"DistributedDataParallel: device_ids or output_device is {place}, and the model is on "
                                f"{found[0][1].device}", code="MLC0976", loc=user_loc(),
                                hint="bring the model there first, or leave them out")
        if init_sync:
            self._compare(arrays)
            self._give([*module.parameters(), *self._common_buffers()])
        if find_unused_parameters and self.process_group.size() > 1 and any(
                isinstance(m, SyncBatchNorm) for m in module.modules()):
            raise RankError("DistributedDataParallel: find_unused_parameters of a model with SyncBatchNorm, whose "
                            "collectives would come before others on ranks that use other parameters", code="MLC0976",
                            loc=user_loc(), hint="have all ranks use all parameters, and leave it out")
        cap = 25.0 if bucket_cap_mb is None else bucket_cap_mb
        self._reducer = Reducer([name for name, _ in found], [p for _, p in found], self.process_group,
                                int(cap * (1 << 20)), find_unused_parameters or static_graph)

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Call the model, and have the next backward average the gradients.

        Args:
            args: As the model takes them.
            keywords: As the model takes them.

        Returns:
            The result of the model.

        Raises:
            UserError: A function is being recorded (MLC0976).
        """
        if state.trace is not None:
            raise UserError("DistributedDataParallel is called while a function is recorded", code="MLC0976",
                            loc=user_loc(), hint="compile the model in it: DistributedDataParallel(mlc.compile(model))")
        if self.require_forward_param_sync and self.broadcast_buffers:
            self._give(self._common_buffers())
        self.require_forward_param_sync = mode.enabled and self.require_backward_grad_sync
        if mode.enabled:
            self._reducer.expect(self.require_backward_grad_sync)
        return self.module(*args, **keywords)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context in whose calls of the model gradients only accumulate, and are averaged by the next pass outside.

        Returns:
            A context manager.

        Example:
            >>> from mlc.backends.transport import threads
            >>> def gradient(rank):
            ...     mlc.distributed.init_process_group()
            ...     model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
            ...     with model.no_sync():
            ...         model(mlc.tensor([[float(rank)]])).sum().backward()
            ...     model(mlc.tensor([[1.0]])).sum().backward()
            ...     return model.module.weight.grad.item()
            >>> threads.run(2, gradient)
            [1.5, 1.5]
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _common_buffers(self) -> list[Tensor]:
        """The buffers that all ranks have in common: not the keys of layers, which draw on each rank by themselves."""
        return [x for module in self.module.modules() for name, x in module.named_buffers(recurse=False)
                if not (isinstance(module, Keyed) and name == "key")]

    def _compare(self, arrays: dict[str, Array]) -> None:
        """RankError if the ranks have parameters of different names, shapes or dtypes."""
        mine = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in arrays.items()]
        all_of = [mine] * self.process_group.size()
        distributed.all_gather_object(all_of, mine, self.process_group)
        first, rank0 = all_of[0], self.process_group.ranks[0]
        for rank, theirs in zip(self.process_group.ranks, all_of):
            if theirs != first:
                a, b = next(((a, b) for a, b in zip(first, theirs) if a != b),
                            (f"{len(first)} parameters", f"{len(theirs)} parameters"))
                raise RankError(f"DistributedDataParallel: the ranks have different models: {a} on rank {rank0}, {b} "
                                f"on rank {rank}", code="MLC0979", ranks=[rank], loc=user_loc(),
                                hint="make the same model on all ranks")

    def _give(self, tensors: Sequence[Tensor]) -> None:
        """Give all ranks the tensors of position 0, those of one dtype in one message."""
        by_dtype = dict[Any, list[Tensor]]()
        for x in tensors:
            by_dtype.setdefault(array_of(x, "DistributedDataParallel").dtype, []).append(x)
        for dtype, same in by_dtype.items():
            arrays = [x._array for x in same]
            call = Collective("DistributedDataParallel", self.process_group,
                              f"{len(same)} tensors of rank 0, {dtype}[{sum(x.size for x in arrays)}]", *arrays)
            mine = self.process_group.rank() == 0
            call.run(call.place.broadcast(arrays, 0), partial(write_all, () if mine else same))
