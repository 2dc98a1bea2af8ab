"""Losses of classifiers as modules, under the names of torch.nn."""

from __future__ import annotations

from mlc.frontend.functions import losses
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module


class CrossEntropyLoss(Module):
    """Cross entropy of classes: -log_softmax(input)[target].

    Of a target of probabilities it is -sum_c target[c] * log_softmax(input)[c]. With label smoothing e, the target is
    (1 - e) * target + e / classes. The mean of a loss by class indices is weighted: sum(weight[t] * loss) /
    sum(weight[t]) over the samples that are not ignored, and NaN where there are none. Losses of float16 and bfloat16
    are summed in float32. (Label smoothing: Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer
    Vision".)

    Shape:
        Input [n, classes, ...] or [classes] of floats; target [n, ...] or [] of integers, or of floats in the shape of
        the input -> [], or with reduction "none" [n, ...].

    Attributes:
        weight: Buffer [classes], or None.

    Args:
        weight: Weight of each class, floats [classes]; None for 1.
        ignore_index: Target that contributes neither loss nor gradient; only for class indices.
        reduction: "mean", "sum", or "none" for the loss of each sample.
        label_smoothing: Number from 0 to 1.

    Raises:
        UserIndexError: A target is not in [0, classes) (MLC0340).
        UserError: Shapes do not fit (MLC0367), or `reduction` or `label_smoothing` is not allowed (MLC0360).

    Example:
        >>> logits = mlc.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> nn.CrossEntropyLoss(reduction="none")(logits, mlc.tensor([0, 2]))
        tensor([0.23954484, 1.0986123 ], dtype=mlc.float32)
    """

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        self.weight, self.ignore_index = weight, ignore_index
        self.reduction, self.label_smoothing = reduction, label_smoothing

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction,
                                    self.label_smoothing)


class NLLLoss(Module):
    """Negative log likelihood of classes: -weight[target] * input[target], where the input holds log probabilities.

    The mean is weighted: sum(weight[t] * loss) / sum(weight[t]) over the samples that are not ignored, and NaN where
    there are none.

    Shape:
        Input [n, classes, ...] or [classes] of floats; target [n, ...] or [] of integers -> [], or with reduction
        "none" [n, ...].

    Attributes:
        weight: Buffer [classes], or None.

    Args:
        weight: Weight of each class, floats [classes]; None for 1.
        ignore_index: Target that contributes neither loss nor gradient.
        reduction: "mean", "sum", or "none" for the loss of each sample.

    Raises:
        UserIndexError: A target is not in [0, classes) (MLC0340).
        UserTypeError: The target is not of integers (MLC0354).
        UserError: Shapes do not fit (MLC0367), or `reduction` is not allowed (MLC0360).

    Example:
        >>> logs = nn.LogSoftmax(1)(mlc.tensor([[2.0, 0.0], [0.0, 0.0]]))
        >>> nn.NLLLoss(reduction="none")(logs, mlc.tensor([0, 1]))
        tensor([0.12692805, 0.6931472 ], dtype=mlc.float32)
    """

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCELoss(Module):
    """Binary cross entropy of probabilities: -weight * (target * log(input) + (1 - target) * log(1 - input)).

    Logarithms are bounded below by -100, and their derivatives by 1e12. Unlike in PyTorch, an input outside of [0, 1]
    is not refused and gives NaN.

    Shape:
        Input and target of the same shape -> [], or with reduction "none" that shape.

    Attributes:
        weight: Buffer, or None.

    Args:
        weight: Weights that broadcast to the input; None for 1.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.BCELoss()(mlc.tensor([0.5, 0.9]), mlc.tensor([1.0, 1.0]))
        tensor(0.39925388, dtype=mlc.float32)
    """

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight, self.reduction = weight, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Module):
    """Binary cross entropy of logits: -weight * (pos_weight * target * log(s) + (1 - target) * log(1 - s))

    Here s = sigmoid(input). It is computed from softplus(-input), so that large logits neither overflow nor round to 0
    or 1.

    Shape:
        Input and target of the same shape -> [], or with reduction "none" that shape.

    Attributes:
        weight: Buffer, or None.
        pos_weight: Buffer, or None.

    Args:
        weight: Weights that broadcast to the input; None for 1.
        reduction: "mean", "sum", or "none" for the loss of each element.
        pos_weight: Weights of the positive term, which broadcast to the input; None for 1.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.BCEWithLogitsLoss()(mlc.tensor([0.0, 2.0]), mlc.tensor([1.0, 1.0]))
        tensor(0.4100376, dtype=mlc.float32)
    """

    _buffers = ("weight", "pos_weight")

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        self.weight, self.reduction, self.pos_weight = weight, reduction, pos_weight

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class MultiLabelSoftMarginLoss(Module):
    """Binary cross entropy of logits, averaged over the classes: mean_c of BCEWithLogitsLoss(input[c], target[c]).

    Shape:
        Input and target [..., classes] -> [], or with reduction "none" [...].

    Attributes:
        weight: Buffer, or None.

    Args:
        weight: Weights that broadcast to the input; None for 1.
        reduction: "mean", "sum", or "none" for the loss of each sample.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(mlc.tensor([[0.0, 2.0]]), mlc.tensor([[0.0, 1.0]]))
        tensor(0.4100376, dtype=mlc.float32)
    """

    _buffers = ("weight",)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight, self.reduction = weight, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class MultiLabelMarginLoss(Module):
    """Hinge loss of several labels: sum over labels y and other classes i of max(0, 1 - (x[y] - x[i])) / classes.

    The labels of a sample are the classes before the first negative number of its target.

    Shape:
        Input of floats and target of integers, both [n, classes] or [classes] -> [], or with reduction "none" [n].

    Args:
        reduction: "mean", "sum", or "none" for the loss of each sample.

    Raises:
        UserIndexError: A label is not below the number of classes (MLC0340).
        UserError: Shapes do not fit (MLC0367), `reduction` is not allowed (MLC0360), or the target is not of integers
            (MLC0354).

    Example:
        >>> nn.MultiLabelMarginLoss()(mlc.tensor([0.1, 0.2, 0.4, 0.8]), mlc.tensor([3, 0, -1, 1]))
        tensor(0.85, dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.multilabel_margin_loss(input, target, self.reduction)


class MultiMarginLoss(Module):
    """Hinge loss of classes: weight[t] * sum_i max(0, margin - x[t] + x[i])**p / classes, over i != t = target.

    (Crammer and Singer 2001, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines".)

    Shape:
        Input [n, classes] or [classes] of floats, target [n] or [] of integers -> [], or with reduction "none" [n].

    Attributes:
        weight: Buffer [classes], or None.

    Args:
        p: Exponent, 1 or 2.
        margin: Difference from which on a pair of classes has no loss.
        weight: Weight of each class, floats [classes]; None for 1.
        reduction: "mean", "sum", or "none" for the loss of each sample.

    Raises:
        UserIndexError: A target is not in [0, classes) (MLC0340).
        UserError: Shapes do not fit (MLC0367), `p` or `reduction` is not allowed (MLC0360), or the target is not of
            integers (MLC0354).

    Example:
        >>> nn.MultiMarginLoss()(mlc.tensor([[0.1, 0.2, 0.4, 0.8]]), mlc.tensor([3]))
        tensor(0.325, dtype=mlc.float32)
    """

    _buffers = ("weight",)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.p, self.margin, self.weight, self.reduction = p, margin, weight, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class NLLLoss2d(NLLLoss):
    """`NLLLoss` under a former name.

    Args:
        weight: Factors of the classes, or None.
        ignore_index: Target that does not count.
        reduction: "mean", "sum", or "none" for the loss of each target.

    Raises:
        UserError: As for `NLLLoss` (MLC0360, MLC0367).

    Example:
        >>> isinstance(nn.NLLLoss2d(), nn.NLLLoss)
        True
    """
