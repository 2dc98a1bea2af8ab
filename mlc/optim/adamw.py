"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.tensor import Operand
from mlc.optim.optimizer import Optimizer, leaves_of, trees_of, zeros_like


class AdamW(Optimizer):
    """m = lerp(g, m, beta1);  v = lerp(g ** 2, v, beta2);  p = p * (1 - lr * weight_decay) - step * m / (sqrt(v) + eps)

    with m and v divided by 1 - beta ** t in the last formula. As torch.optim.AdamW. (Loshchilov and Hutter,
    "Decoupled Weight Decay Regularization", 2019.)
    """

    def __init__(self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2) -> None:
        super().__init__(lr)
        self.check("betas[0]", betas[0], 1)
        self.check("betas[1]", betas[1], 1)
        self.check("eps", eps)
        self.check("weight_decay", weight_decay)
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay

    def init(self, params: Any) -> dict[str, Any]:
        """Both moments, and beta ** t kept as products: in float64, where t of them lose t roundings."""
        return {"exp_avg": zeros_like(params), "exp_avg_sq": zeros_like(params),
                "beta1_power": create.ones(dtype="float64"), "beta2_power": create.ones(dtype="float64")}

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        lr = self.lr if lr is None else lr
        beta1, beta2 = self.betas
        power1, power2 = state["beta1_power"] * beta1, state["beta2_power"] * beta2
        step = lr / (1 - power1)
        scale = E.rsqrt(1 - power2)
        structure, rows = leaves_of(params, grads, state["exp_avg"], state["exp_avg_sq"])
        moved = []
        for p, g, m, v in rows:
            m = m + (1 - beta1) * (g - m)
            v = v * beta2 + (1 - beta2) * (g * g)
            moved.append((p * (1 - lr * self.weight_decay) - step * (m / (E.sqrt(v) * scale + self.eps)), m, v))
        params, exp_avg, exp_avg_sq = trees_of(structure, moved, 3)
        return params, {"exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "beta1_power": power1, "beta2_power": power2}
