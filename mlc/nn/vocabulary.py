"""Losses over many classes that contain the linear map in front of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import losses, neural, reduce
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.index import gather
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn.containers import ModuleList, Sequential
from mlc.nn.linear import Linear
from mlc.nn.module import Module


class LinearCrossEntropyLoss(Module):
    """Cross entropy of a linear map of the input: that of linear(input) and the target, as one function.

    Shape:
        Input [n, in_features] or [in_features] and target [n, *out_features] or [] of classes, or
        [n, num_classes, *out_features] or [num_classes] of probabilities -> [], or with reduction "none" the shape of
        the classes.

    Attributes:
        linear: The map, a `Linear` of num_classes * product of out_features results.

    Args:
        in_features: Number of features of the input.
        num_classes: Number of classes.
        out_features: Shape of the targets of one sample.
        bias: Whether the map has a bias.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        reduction: "mean", "sum", or "none" for the loss of each target.
        weight: Factors [num_classes] of the classes, or None.
        ignore_index: Target that does not count, or None.
        label_smoothing: Part of each target that is spread evenly over all classes.
        options: None; PyTorch's options for chunks of the batch are refused.

    Raises:
        UserError: A setting is not allowed (MLC0360), shapes do not fit (MLC0367), a size is negative (MLC0358), the
            float dtypes of the input and the parameters differ (MLC0420), the target is not of integers (MLC0354), a
            class is out of range (MLC0340, an IndexError), or the number of dimensions is wrong (MLC0364).

    Example:
        >>> nn.LinearCrossEntropyLoss(3, 5)(mlc.ones(4, 3), mlc.tensor([0, 1, 2, 3])).shape
        ()
    """

    _buffers = ("weight",)

    def __init__(self, in_features: int, num_classes: int, *, out_features: Sequence[int] = (), bias: bool = False,
                 device: Any = None, dtype: DTypeLike = None, reduction: str = "mean", weight: Tensor | None = None,
                 ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None) -> None:
        if options is not None:
            raise UserError("options of LinearCrossEntropyLoss are about chunks of the batch, which mlc does not make",
                            code="MLC0360", loc=user_loc(), hint="pass options=None")
        if not 0 <= label_smoothing <= 1:
            raise UserError(f"label_smoothing = {label_smoothing} is not in [0, 1]", code="MLC0360", loc=user_loc())
        self.weight, self.reduction, self.num_classes = weight, reduction, num_classes
        self.out_features, self.ignore_index = tuple(out_features), ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
                f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}")

    def forward(self, input: Operand, target: Operand) -> Tensor:
        logits = self.linear(input)
        if self.out_features:
            logits = S.unflatten(logits, -1, (self.num_classes, *self.out_features))
        ignored = -100 if self.ignore_index is None else self.ignore_index
        return losses.cross_entropy(logits, target, self.weight, ignored, self.reduction, self.label_smoothing)


class AdaptiveLogSoftmaxOutput(NamedTuple):
    """Result of `AdaptiveLogSoftmaxWithLoss`: the logarithm of the probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over classes in clusters: frequent classes and one for each cluster, then those of the cluster.

    A cluster i projects the input to in_features / div_value ** (i + 1) features. (Grave, Joulin, Cissé, Grangier and
    Jégou 2017, "Efficient softmax approximation for GPUs".)

    Shape:
        Input [n, in_features] and target [n], or without n -> a named tuple of output [n] or [] and loss [].

    Attributes:
        head: Map to the frequent classes and the clusters, a `Linear`.
        tail: The maps of the clusters.

    Args:
        in_features: Number of features of the input.
        n_classes: Number of classes.
        cutoffs: First class of each cluster, in increasing order.
        div_value: By how much each cluster has fewer features than the one before.
        head_bias: Whether the head has a bias.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The cutoffs are not increasing numbers between 1 and n_classes - 1 (MLC0360), shapes do not fit
            (MLC0364, MLC0367), a size is negative (MLC0358), the float dtypes of the input and the parameters differ
            (MLC0420), the target is not of integers (MLC0354), or a class is out of range (MLC0340, an IndexError).

    Example:
        >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5])
        >>> layer(mlc.ones(3, 8), mlc.tensor([0, 4, 9])).output.shape, layer.log_prob(mlc.ones(3, 8)).shape
        ((3,), (3, 10))
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Any = None, dtype: DTypeLike = None) -> None:
        given = list(cutoffs)
        if not given or sorted({*given}) != given or given[0] < 1 or given[-1] > n_classes - 1:
            raise UserError(f"cutoffs = {given} are not increasing integers between 1 and {n_classes - 1}",
                            code="MLC0360", loc=user_loc())
        if not div_value > 0:
            raise UserError(f"div_value = {div_value}, expected a number above 0", code="MLC0360", loc=user_loc())
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*given, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = given[0], len(given)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, hidden, False, device, dtype),
                                        Linear(hidden, high - low, False, device, dtype)))

    def forward(self, input: Operand, target: Operand) -> AdaptiveLogSoftmaxOutput:
        """Compute the logarithm of the probability of each target.

        Args:
            input: Tensor [n, in_features], or [in_features].
            target: Classes [n], or [].

        Returns:
            Named tuple of output, of the shape of the target, and of loss, -1 times its mean.
        """
        if len(target.shape) not in (0, 1) or len(input.shape) != len(target.shape) + 1:
            raise UserError(f"an input of {len(input.shape)} and a target of {len(target.shape)} dimensions",
                            code="MLC0364", loc=user_loc())
        x, t = (input, target) if target.shape else (input.unsqueeze(0), target.unsqueeze(0))
        if x.shape[0] != t.shape[0]:
            raise UserError(f"{x.shape[0]} inputs for {t.shape[0]} targets", code="MLC0367", loc=user_loc())
        output = S.squeeze(gather(self.log_prob(x), 1, S.unsqueeze(t, 1)), 1)
        loss = -reduce.mean(output)
        return AdaptiveLogSoftmaxOutput(output if target.shape else output.squeeze(0), loss)

    def log_prob(self, input: Operand) -> Tensor:
        """Compute the logarithms of the probabilities of all classes.

        Args:
            input: Tensor [n, in_features].

        Returns:
            Tensor [n, n_classes].
        """
        head = neural.log_softmax(self.head(input), 1)
        parts = [head[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(E.add(neural.log_softmax(cluster(input), 1), head[:, at:at + 1]))
        return S.cat(parts, 1)

    def predict(self, input: Operand) -> Tensor:
        """Find the class of the greatest probability.

        Args:
            input: Tensor [n, in_features].

        Returns:
            Tensor [n] of int64.
        """
        return reduce.argmax(self.log_prob(input), 1)
