"""Module: a tree of parameters with a `forward`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import call, state
from mlc.ir.diag import UserError, UserTypeError


class Module(tree.AttributeTree):
    """A part of a model. Its parameters are the attributes that are tensors, in it and in the modules it holds.

    A module is itself an argument and a result: `mlc.grad(loss)(model, x)` is a module that holds the gradients, and
    `opt.update(gradients, state, model)` returns a new model. Attributes without arrays (sizes, functions, flags) are
    part of what is compiled.

        class Net(nn.Module):
            def __init__(self):
                self.hidden = nn.Linear(64, 128)
                self.out = nn.Linear(128, 10)

            def forward(self, x):
                return self.out(mlc.relu(self.hidden(x)))
    """

    def forward(self, *args: Any, **keywords: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """forward(...); within a recorded function, a call of a function of its own."""
        if state.trace is None:
            return self.forward(*args, **keywords)
        return call(type(self).__name__, self.forward, *args, **keywords)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(path, tensor) of every parameter, such as ("layers[0].weight", ...)."""
        for path, x in zip(tree.paths(self), tree.leaves(self)):
            if isinstance(x, Tensor):
                yield path.removeprefix("."), x

    def parameters(self) -> list[Tensor]:
        return [x for _, x in self.named_parameters()]

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters by path."""
        return dict(self.named_parameters())

    def load_state_dict(self, state: dict[str, Any]) -> Module:
        """A module like this one with the parameters of `state`, which holds the same paths and shapes."""
        leaves, structure = tree.flatten(self)
        paths = [path.removeprefix(".") for path in tree.paths(self)]
        wanted = {path for path, x in zip(paths, leaves) if isinstance(x, Tensor)}
        if wanted != set(state):
            missing, extra = sorted(wanted - set(state)), sorted(set(state) - wanted)
            raise UserError("the state does not fit the module: " + "; ".join(
                [f"{what} {', '.join(names)}" for what, names in (("missing", missing), ("unknown", extra)) if names]),
                code="MLC0382", loc=user_loc())
        out = []
        for path, old in zip(paths, leaves):
            if path not in wanted:
                out.append(old)
                continue
            new = Tensor(np.array(state[path], order="C"))
            if new.shape != old.shape or new.dtype is not old.dtype:
                raise UserTypeError(f"{path} is {new.dtype}{list(new.shape)}, expected {old.dtype}{list(old.shape)}",
                                    code="MLC0382", loc=user_loc())
            out.append(new)
        return structure.unflatten(out)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        lines = []
        for name, x in vars(self).items():
            if isinstance(x, Tensor):
                shown = f"{x.dtype}{list(x.shape)}" if x._array is None or isinstance(x._array, np.ndarray) else repr(x)
            else:
                shown = repr(x)
            lines.append(f"{name}={shown}".replace("\n", "\n  "))
        flat = ", ".join(lines)
        if len(flat) < 80 and "\n" not in flat:
            return f"{type(self).__name__}({flat})"
        return f"{type(self).__name__}(\n  " + ",\n  ".join(lines) + "\n)"
