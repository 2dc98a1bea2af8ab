"""Losses as modules, under the names of torch.nn."""

from __future__ import annotations

from mlc.frontend.functions import losses
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module


class CrossEntropyLoss(Module):
    """-log_softmax(input)[target], or for probabilities -sum(target * log_softmax(input))"""

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        self.weight, self.ignore_index = weight, ignore_index
        self.reduction, self.label_smoothing = reduction, label_smoothing

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction,
                                    self.label_smoothing)


class NLLLoss(Module):
    """-input[target], where input holds log probabilities"""

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCELoss(Module):
    """-(target * log(input) + (1 - target) * log(1 - input))"""

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight, self.reduction = weight, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Module):
    """BCELoss of sigmoid(input), with pos_weight on the samples whose target is 1"""

    _buffers = ("weight", "pos_weight")

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        self.weight, self.reduction, self.pos_weight = weight, reduction, pos_weight

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class MultiLabelSoftMarginLoss(Module):
    """The mean over the classes of BCEWithLogitsLoss"""

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight, self.reduction = weight, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class MultiLabelMarginLoss(Module):
    """The sum over labels y and other classes i of max(0, 1 - (input[y] - input[i])) / classes"""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.multilabel_margin_loss(input, target, self.reduction)


class MultiMarginLoss(Module):
    """The mean over the other classes i of max(0, margin - input[target] + input[i]) ** p"""

    _buffers = ("weight",)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.p, self.margin, self.weight, self.reduction = p, margin, weight, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MSELoss(Module):
    """(input - target) ** 2"""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.mse_loss(input, target, self.reduction)


class L1Loss(Module):
    """|input - target|"""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.l1_loss(input, target, self.reduction)


class SmoothL1Loss(Module):
    """HuberLoss / beta"""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        self.reduction, self.beta = reduction, beta

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(Module):
    """d ** 2 / 2 within delta of the target, delta * (|d| - delta / 2) beyond"""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self.reduction, self.delta = reduction, delta

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Module):
    """target * (log(target) - input), where input holds log probabilities"""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        self.reduction, self.log_target = reduction, log_target

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.kl_div(input, target, self.reduction, self.log_target)


class PoissonNLLLoss(Module):
    """e ** input - target * input, or input - target * log(input + eps)"""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        self.log_input, self.full, self.eps, self.reduction = log_input, full, eps, reduction

    def forward(self, log_input: Operand, target: Operand) -> Tensor:
        return losses.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(Module):
    """(log(var) + (input - target) ** 2 / var) / 2"""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        self.full, self.eps, self.reduction = full, eps, reduction

    def forward(self, input: Operand, target: Operand, var: Operand) -> Tensor:
        return losses.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class HingeEmbeddingLoss(Module):
    """input where the target is 1, max(0, margin - input) where it is -1"""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        self.margin, self.reduction = margin, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.hinge_embedding_loss(input, target, self.margin, self.reduction)


class SoftMarginLoss(Module):
    """log(1 + e ** (-target * input))"""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.soft_margin_loss(input, target, self.reduction)


class MarginRankingLoss(Module):
    """max(0, -target * (input1 - input2) + margin)"""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self.margin, self.reduction = margin, reduction

    def forward(self, input1: Operand, input2: Operand, target: Operand) -> Tensor:
        return losses.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(Module):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1"""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self.margin, self.reduction = margin, reduction

    def forward(self, input1: Operand, input2: Operand, target: Operand) -> Tensor:
        return losses.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(Module):
    """max(0, |anchor - positive| - |anchor - negative| + margin)"""

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 reduction: str = "mean") -> None:
        self.margin, self.p, self.eps, self.swap, self.reduction = margin, p, eps, swap, reduction

    def forward(self, anchor: Operand, positive: Operand, negative: Operand) -> Tensor:
        return losses.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
                                          self.reduction)
