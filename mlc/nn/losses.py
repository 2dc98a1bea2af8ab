"""Losses as modules, under the names of torch.nn."""

from __future__ import annotations

from collections.abc import Callable

from mlc.frontend.functions import losses
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module


class MSELoss(Module):
    """Squared error: (input - target)**2.

    Unlike in PyTorch, the shapes do not broadcast.

    Shape:
        Input and target of the same shape -> [], or with reduction "none" that shape.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.MSELoss()(mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 4.0]))
        tensor(2., dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.mse_loss(input, target, self.reduction)


class L1Loss(Module):
    """Absolute error: |input - target|.

    The derivative at 0 is 0. Unlike in PyTorch, the shapes do not broadcast.

    Shape:
        Input and target of the same shape -> [], or with reduction "none" that shape.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.L1Loss()(mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 4.0]))
        tensor(1., dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.l1_loss(input, target, self.reduction)


class SmoothL1Loss(Module):
    """Absolute error with a quadratic bottom: d**2 / (2 * beta) if d < beta, else d - beta / 2, d = |input - target|.

    It is `HuberLoss` with delta = beta, divided by beta; with beta = 0 it is `L1Loss`. (Girshick 2015, "Fast R-CNN".)
    Unlike in PyTorch, the shapes do not broadcast.

    Shape:
        Input and target of the same shape -> [], or with reduction "none" that shape.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.
        beta: Where the quadratic and the linear part meet; not negative.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` or `beta` is not allowed (MLC0360).

    Example:
        >>> nn.SmoothL1Loss(reduction="none")(mlc.tensor([1.5, 2.0]), mlc.tensor([1.0, 4.0]))
        tensor([0.125, 1.5  ], dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        self.reduction, self.beta = reduction, beta

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(Module):
    """Huber loss: d**2 / 2 if d <= delta, else delta * (d - delta / 2), with d = |input - target|.

    (Huber 1964, "Robust Estimation of a Location Parameter".) Unlike in PyTorch, the shapes do not broadcast.

    Shape:
        Input and target of the same shape -> [], or with reduction "none" that shape.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.
        delta: Where the quadratic and the linear part meet; above 0.

    Raises:
        UserError: Input and target differ in shape (MLC0367), or `reduction` or `delta` is not allowed (MLC0360).

    Example:
        >>> nn.HuberLoss(reduction="none")(mlc.tensor([1.5, 2.0]), mlc.tensor([1.0, 4.0]))
        tensor([0.125, 1.5  ], dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self.reduction, self.delta = reduction, delta

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Module):
    """Kullback-Leibler divergence, pointwise: target * (log(target) - input), where the input holds log probabilities.

    With log_target it is exp(target) * (target - input). Terms with a target of 0 are 0. The divergence of
    distributions is reduction "batchmean", not "mean".

    Shape:
        Input and target of shapes that broadcast -> [], or with reduction "none" the common shape.

    Args:
        reduction: "mean", "sum", "batchmean" for the sum divided by the size of dimension 0, or "none".
        log_target: Whether the target holds log probabilities too.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.KLDivLoss("batchmean")(mlc.log(mlc.tensor([[0.5, 0.5]])), mlc.tensor([[1.0, 0.0]]))
        tensor(0.6931472, dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        self.reduction, self.log_target = reduction, log_target

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.kl_div(input, target, self.reduction, self.log_target)


class PoissonNLLLoss(Module):
    """Negative log likelihood of a Poisson distribution: exp(input) - target * input.

    With log_input=False, the input is the rate itself: input - target * log(input + eps). With full, Stirling's
    approximation of log(target!), target * log(target) - target + log(2 * pi * target) / 2, is added where target > 1.

    Shape:
        Input and target of shapes that broadcast -> [], or with reduction "none" the common shape.

    Args:
        log_input: Whether the input is the logarithm of the rate.
        full: Whether the term that does not depend on the input is added.
        eps: Added to a rate before its logarithm is taken.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.PoissonNLLLoss()(mlc.tensor([0.0, 1.0]), mlc.tensor([1.0, 2.0]))
        tensor(0.8591409, dtype=mlc.float32)
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        self.log_input, self.full, self.eps, self.reduction = log_input, full, eps, reduction

    def forward(self, log_input: Operand, target: Operand) -> Tensor:
        return losses.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(Module):
    """Negative log likelihood of a normal distribution: (log(v) + (input - target)**2 / v) / 2 with v = max(var, eps).

    With full, log(2 * pi) / 2 is added. The gradient by var is that of v, also where var is below eps. Unlike in
    PyTorch, a negative variance is not refused. (Nix and Weigend 1994, "Estimating the Mean and Variance of the Target
    Probability Distribution".)

    Shape:
        Input and target of shapes that broadcast, var of a shape that broadcasts with them, or with the last dimension
        left out -> [], or with reduction "none" the common shape.

    Args:
        full: Whether the constant is added.
        eps: Smallest variance.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.GaussianNLLLoss()(mlc.tensor([0.0, 1.0]), mlc.tensor([1.0, 1.0]), mlc.tensor([1.0, 4.0]))
        tensor(0.5965736, dtype=mlc.float32)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        self.full, self.eps, self.reduction = full, eps, reduction

    def forward(self, input: Operand, target: Operand, var: Operand) -> Tensor:
        return losses.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class HingeEmbeddingLoss(Module):
    """Hinge loss of distances: input where target is 1, max(0, margin - input) where it is -1.

    Where the target is neither, both terms are added, as in PyTorch.

    Shape:
        Input and target of shapes that broadcast -> [], or with reduction "none" the common shape.

    Args:
        margin: Distance from which on a pair with target -1 has no loss.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.HingeEmbeddingLoss(reduction="none")(mlc.tensor([0.5, 0.25]), mlc.tensor([1, -1]))
        tensor([0.5 , 0.75], dtype=mlc.float32)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        self.margin, self.reduction = margin, reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.hinge_embedding_loss(input, target, self.margin, self.reduction)


class SoftMarginLoss(Module):
    """Logistic loss of two classes: log(1 + exp(-target * input)), with targets 1 and -1.

    Shape:
        Input and target of shapes that broadcast -> [], or with reduction "none" the common shape.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.SoftMarginLoss(reduction="none")(mlc.tensor([0.0, 2.0]), mlc.tensor([1, -1]))
        tensor([0.6931472, 2.126928 ], dtype=mlc.float32)
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.soft_margin_loss(input, target, self.reduction)


class MarginRankingLoss(Module):
    """Hinge loss of the order of pairs: max(0, -target * (input1 - input2) + margin).

    A target of 1 says that input1 is to be greater than input2, -1 the opposite.

    Shape:
        Inputs and target of shapes that broadcast -> [], or with reduction "none" the common shape.

    Args:
        margin: Difference from which on a pair in the right order has no loss.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.MarginRankingLoss()(mlc.tensor([1.0, 2.0]), mlc.tensor([0.0, 3.0]), mlc.tensor([1, 1]))
        tensor(0.5, dtype=mlc.float32)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self.margin, self.reduction = margin, reduction

    def forward(self, input1: Operand, input2: Operand, target: Operand) -> Tensor:
        return losses.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(Module):
    """Cosine loss of pairs: 1 - cos(input1, input2) where target is 1, max(0, cos(input1, input2) - margin) elsewhere.

    cos is taken along the last dimension; 2**-40 is added to both squared norms. PyTorch gives 0 for targets other than
    1 and -1.

    Shape:
        Inputs [n, d] and target [n], or [d] and [] -> [], or with reduction "none" the shape of the target.

    Args:
        margin: Cosine up to which a pair with target -1 has no loss.
        reduction: "mean", "sum", or "none" for the loss of each pair.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> a, b = mlc.tensor([[1.0, 0.0], [1.0, 0.0]]), mlc.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> nn.CosineEmbeddingLoss(reduction="none")(a, b, mlc.tensor([1, -1]))
        tensor([1., 1.], dtype=mlc.float32)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self.margin, self.reduction = margin, reduction

    def forward(self, input1: Operand, input2: Operand, target: Operand) -> Tensor:
        return losses.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(Module):
    """Triplet loss: max(0, d(anchor, positive) - d(anchor, negative) + margin), d(a, b) = norm(a - b + eps, p).

    With swap, d(positive, negative) stands in for d(anchor, negative) where it is smaller. (Balntas, Riba, Ponsa and
    Mikolajczyk 2016, "Learning Local Feature Descriptors with Triplets and Shallow Convolutional Neural Networks".)

    Shape:
        Three inputs [..., d] of shapes that broadcast -> [], or with reduction "none" [...].

    Args:
        margin: Difference of distances from which on a triplet has no loss.
        p: Order of the norm.
        eps: Added to each difference, so that the norm has a derivative at 0.
        swap: Whether the distance from the positive to the negative counts too.
        reduction: "mean", "sum", or "none" for the loss of each triplet.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> nn.TripletMarginLoss()(mlc.zeros(1, 2), mlc.ones(1, 2), mlc.tensor([[3.0, 4.0]]))
        tensor(0., dtype=mlc.float32)
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 reduction: str = "mean") -> None:
        self.margin, self.p, self.eps, self.swap, self.reduction = margin, p, eps, swap, reduction

    def forward(self, anchor: Operand, positive: Operand, negative: Operand) -> Tensor:
        return losses.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
                                          self.reduction)


class TripletMarginWithDistanceLoss(Module):
    """Triplet loss with a distance of one's own: max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Shape:
        Three inputs that the distance takes -> [], or with reduction "none" the shape of the distances.

    Args:
        distance_function: Function of two tensors; None for the distance of `nn.PairwiseDistance`.
        margin: Difference of distances from which on a triplet has no loss.
        swap: Whether the distance from the positive to the negative counts too.
        reduction: "mean", "sum", or "none" for the loss of each triplet.

    Raises:
        UserError: Shapes do not broadcast (MLC0111), or `reduction` is not allowed (MLC0360).

    Example:
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
        >>> loss(mlc.zeros(1, 2), mlc.ones(1, 2), mlc.tensor([[3.0, 4.0]]))
        tensor(0., dtype=mlc.float32)
    """

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
                 swap: bool = False, reduction: str = "mean") -> None:
        self.distance_function, self.margin, self.swap, self.reduction = distance_function, margin, swap, reduction

    def forward(self, anchor: Operand, positive: Operand, negative: Operand) -> Tensor:
        return losses.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction)


class CTCLoss(Module):
    """Loss of sequences without alignment: -ln of the probability of the labels, summed over their alignments.

    The derivative is that by what is in front of the `LogSoftmax` that the input comes from. (Graves, Fernández, Gomez
    and Schmidhuber 2006, "Connectionist Temporal Classification".)

    Shape:
        Logarithms of probabilities [steps, n, classes] or [steps, classes], targets [n, labels] or all in one vector,
        and the lengths of both, [n] or [] -> [], or with reduction "none" [n].

    Args:
        blank: The class that stands for no label.
        reduction: "mean" of the losses divided by the numbers of labels, their "sum", or "none" for each of them.
        zero_infinity: Whether the loss of a sequence that has no alignment is 0, rather than infinite.

    Raises:
        UserError: `reduction` is another string (MLC0360), a number of dimensions is wrong (MLC0364), lengths are no
            integers (MLC0354), their number differs from that of the sequences (MLC0367), or a length is above what
            there is or a label no class (MLC0340, an IndexError).

    Example:
        >>> even = mlc.log(mlc.full((2, 1, 2), 0.5))
        >>> nn.CTCLoss()(even, mlc.tensor([[1]]), mlc.tensor([2]), mlc.tensor([1]))
        tensor(0.28768212, dtype=mlc.float32)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Operand, targets: Operand, input_lengths: Operand, target_lengths: Operand) -> Tensor:
        return losses.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                               self.zero_infinity)
