"""Backward of checked calls: what forward has left gives the same gradients as a computation from all operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.array_difference import unlike
from mlc.frontend import tree
from mlc.frontend.autograd.function_node import FunctionNode
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.tangents import duals
from mlc.frontend.devices import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, as_array, wrap
from mlc.ir.diag import InternalError


def compare_backward(name: str, out: Any, last: bool = False) -> None:
    """InternalError where the gradients of what a call returned depend on whether backward reads what it has left.

    last  whether nobody else will ask for gradients, so that what is left can be given back
    """
    results = [x for x in tree.leaves(out) if type(x) is Tensor and x.device == CPU]
    nodes = {id(x.grad_fn): x.grad_fn for x in results}
    for node in nodes.values():
        if isinstance(node, FunctionNode) and node.split is not None and duals.level is None:
            _compare(name, node, {x.autograd_meta.number: x for x in results if x.grad_fn is node})
            if last:
                node.release()


def _compare(name: str, node: FunctionNode, results: dict[int, Tensor]) -> None:
    """The same for one node and its results, in a random direction."""
    rng = np.random.default_rng(0)
    cotangents = [wrap(rng.standard_normal(x.shape).astype(as_array(x).dtype)) if x is not None else None
                  for x in map(results.get, range(len(node.numbers)))]
    with GradMode(False):
        found = node.pull(cotangents)
        function, operands = node.pullback(cotangents)
        expected = function.call(operands)
    for i, a, b in zip(node.wrt, found, expected):
        message = None if a is None else unlike(np.asarray(as_array(a)), np.asarray(b))
        if message is not None:
            raise InternalError(f"backward of compiled {name}, from what the call has left, gives another gradient of "
                                f"operand {i} than from all operands: {message}", code="MLC0903", loc=user_loc())
