"""SGD: gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Optimizer, leaves_of, trees_of, zeros_like


class SGD(Optimizer):
    """v = momentum * v + g;  p = p - lr * v

    With weight_decay, g has weight_decay * p added; with nesterov, p moves by g + momentum * v. As torch.optim.SGD.
    """

    def __init__(self, lr: float = 1e-3, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False) -> None:
        super().__init__(lr)
        self.check("momentum", momentum)
        self.check("weight_decay", weight_decay)
        if nesterov and not momentum:
            raise UserError("nesterov needs a momentum", code="MLC0383", loc=user_loc())
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov

    def init(self, params: Any) -> dict[str, Any]:
        return {"momentum": zeros_like(params)} if self.momentum else {}

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        lr = self.lr if lr is None else lr
        velocities = (state["momentum"],) if self.momentum else ()
        structure, rows = leaves_of(params, grads, *velocities)
        if not self.momentum:
            return structure.unflatten([p - lr * self._decayed(g, p) for p, g in rows]), state
        moved = []
        for p, g, v in rows:
            g = self._decayed(g, p)
            v = self.momentum * v + g
            moved.append((p - lr * (g + self.momentum * v if self.nesterov else v), v))
        params, momentum = trees_of(structure, moved, 2)
        return params, {"momentum": momentum}

    def _decayed(self, g: Any, p: Any) -> Any:
        return g + self.weight_decay * p if self.weight_decay else g
