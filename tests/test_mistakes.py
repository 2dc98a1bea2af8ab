"""The usual mistakes of PyTorch's users: the code, the message, the line that it points at, and what to do."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError
from mlc.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler, random_split

F: Any = nn.functional                                    # mistakes are not what the types allow
L: Any = nn
Optim: Any = mlc.optim
X, Y = mlc.ones(4, 3), mlc.zeros(4, dtype="int64")


def leaf(*shape: int) -> Any:
    return mlc.ones(*shape, requires_grad=True)


def linear() -> Any:
    return nn.Linear(3, 2)


def sgd() -> Any:
    return Optim.SGD(linear().parameters(), lr=0.1)


class NoSuper(nn.Module):
    def __init__(self) -> None:
        self.layer = nn.Linear(2, 2)


class NoForward(nn.Module):
    pass


class NoLen(Dataset[Any]):
    def __getitem__(self, i: int) -> Any:
        return i


class Ragged(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        return mlc.ones(i + 1)


class Nones(Ragged):
    def __getitem__(self, i: int) -> Any:
        return None


class NoIter(IterableDataset[Any]):
    pass


MISTAKES: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    # autograd
    "backward twice": (lambda: [loss.backward() for loss in [(leaf(2) ** 2).sum()] * 2],
        "MLC0431", "backward goes through PowBackward a second time, and what it had saved was",
        "call the first backward with retain_graph=True, or compute"),
    "backward of many": (lambda: (leaf(3) * 2).backward(),
        "MLC0432", "the tensor has shape [3], and only one element has a gradient by itself",
        "sum or average it, or pass its cotangent:"),
    "backward without requires_grad": (lambda: mlc.ones(3).sum().backward(),
        "MLC0430", "the tensor does not require a gradient: no operation that it comes from was",
        "what to differentiate by needs requires_grad_() before it"),
    "backward in no_grad": (lambda: mlc.no_grad()(lambda: leaf(2).sum().backward())(),
        "MLC0430", "the tensor does not require a gradient: no operation that it comes from was",
        "what to differentiate by needs requires_grad_() before it"),
    "in-place on a leaf": (lambda: leaf(2).add_(1),
        "MLC0439", "a leaf that requires a gradient would be changed in place while operations",
        "update it within mlc.no_grad, or write x = x + y"),
    "subscript on a leaf": (lambda: leaf(2).__setitem__(0, 5.0),
        "MLC0439", "a view of a leaf that requires a gradient would be changed in place while",
        "update it within mlc.no_grad, or write x = x + y"),
    "integer requires grad": (lambda: mlc.tensor([1, 2], requires_grad=True),
        "MLC0433", "only tensors of floats can require a gradient, and this one is of int64",
        "convert it first: x.to(mlc.float32)"),
    "grad wrong shape": (lambda: setattr(leaf(2), "grad", mlc.ones(3)),
        "MLC0435", "the gradient has shape (3,), its tensor (2,)", ""),
    "backward gradient of another shape": (lambda: (leaf(3) * 2).backward(mlc.ones(2)),
        "MLC0432", "the cotangent has shape [2], the tensor [3]",
        "it has an element for each of the tensor: mlc.ones_like(y)"),
    "autograd.grad unused": (lambda: mlc.autograd.grad(leaf(2).sum(), leaf(2)),
        "MLC0437", "the outputs do not depend on input 0, of shape [2]",
        "leave it out, or pass allow_unused=True for None in its"),
    "autograd.grad nonscalar": (lambda: mlc.autograd.grad((w := leaf(2)) * 2, w),
        "MLC0432", "the tensor has shape [2], and only one element has a gradient by itself",
        "sum or average it, or pass its cotangent:"),
    "requires_grad False on non leaf": (lambda: (leaf(2) * 2).requires_grad_(False),
        "MLC0434", "the result of a recorded operation requires a gradient: requires_grad can be",
        "x.detach() is the tensor without its history"),
    "hook wrong": (lambda: ((w := leaf(2)).register_hook(lambda g: 3), w.sum().backward()),
        "MLC0436", "a hook returned a int for a gradient of shape [2] and dtype mlc.float32",
        "return a tensor of the same shape and dtype, or None to"),
    "expanded write": (lambda: mlc.ones(1, 3).expand(2, 3).add_(1),
        "MLC0752", "several elements of the tensor are the same memory, as after expand, and",
        "write to a copy: x.clone()"),
    "float(x) of many": (lambda: float(leaf(3)),
        "MLC0344", "a tensor of shape [3] is no single number",
        "reduce it, as by x.sum(), or take one element, as in x[0];"),
    "if tensor": (lambda: 1 if mlc.ones(3) > 0 else 0,
        "MLC0344", "a tensor of shape [3] is neither true nor false",
        "write x.any() or x.all(); `&` and `|` combine masks"),
    "item of many": (lambda: mlc.ones(3).item(),
        "MLC0344", "a tensor of shape [3] is no single number",
        "reduce it, as by x.sum(), or take one element, as in x[0];"),
    "len of scalar": (lambda: len(mlc.tensor(3.0)),
        "MLC0344", "a 0-d tensor has no length", "x.item() is its number, x.numel() is 1"),
    "iterate scalar": (lambda: list(mlc.tensor(3.0)),
        "MLC0344", "a 0-d tensor has no length", "x.item() is its number, x.numel() is 1"),
    # shapes
    "matmul": (lambda: X @ mlc.ones(4, 3),
        "MLC0367", "matmul: inner sizes differ: 3 and 4", "the last size of the left operand is the last but one of"),
    "linear input": (lambda: linear()(mlc.ones(4, 5)),
        "MLC0367", "linear: inner sizes differ: the input has 5 features, the weight takes 3",
        "make the layer for the features of its input, its last"),
    "broadcast": (lambda: X + mlc.ones(4),
        "MLC0111", "add: shapes [4, 3] and [4] do not broadcast", "shapes broadcast from the last dimension on;"),
    "view size": (lambda: X.view(5, 2),
        "MLC0358", "view: 12 elements do not fit shape [5, 2]",
        "the sizes multiply to the number of elements; one may be"),
    "view two -1": (lambda: X.view(-1, -1),
        "MLC0358", "view: [-1, -1] is no shape: one size may be -1, the others are not negative",
        "the sizes multiply to the number of elements; one may be"),
    "view of transposed": (lambda: X.t().view(12),
        "MLC0751", "the elements of a tensor of shape [3, 4] do not lie in memory in such an",
        "x.reshape(...) copies them where it has to"),
    "cat sizes": (lambda: mlc.cat([X, mlc.ones(4, 2)], dim=0),
        "MLC0115", "cat: shape [4, 2] of operand 1 does not fit [4, 3] outside axis 0",
        "only the sizes of the dimension that is joined may differ;"),
    "cat of none": (lambda: mlc.cat([]),
        "MLC0353", "cat needs a list of at least one tensor", "pass the tensors in one list, which has at least one"),
    "stack sizes": (lambda: mlc.stack([mlc.ones(2), mlc.ones(3)]),
        "MLC0111", "stack: shapes [2] and [3] differ", "pad them to one shape, or join them along a dimension that"),
    "dim out of range": (lambda: X.sum(dim=2),
        "MLC0356", "sum: dim = 2 is out of range for a tensor of 2 dimensions", "it may be -2 to 1"),
    "squeeze float dim": (lambda: X.unsqueeze(5),
        "MLC0356", "unsqueeze: dim = 5 is out of range for a tensor of 3 dimensions", "it may be -3 to 2"),
    "permute too few": (lambda: mlc.ones(2, 3, 4).permute(0, 1),
        "MLC0357", "permute: dims = (0, 1) is no order of 3 dimensions", "name each dimension once"),
    "transpose one": (lambda: X.transpose(0, 3),
        "MLC0356", "transpose: dim1 = 3 is out of range for a tensor of 2 dimensions", "it may be -2 to 1"),
    "conv channels": (lambda: L.Conv2d(3, 8, 3)(mlc.ones(1, 1, 8, 8)),
        "MLC0367", "conv2d: the input has 1 channels, and a weight of shape [8, 3, 3, 3] in 1",
        "channels come second, after the batch; x.movedim(-1, 1)"),
    "conv no batch": (lambda: L.Conv2d(3, 8, 3)(mlc.ones(8, 8)),
        "MLC0364", "conv2d: the input has 2 dimensions, expected 3 or 4",
        "the first dimensions are [batch, channels]; x.unsqueeze(0)"),
    "conv kernel too big": (lambda: L.Conv2d(3, 8, 5)(mlc.ones(1, 3, 4, 4)),
        "MLC0367", "conv2d: a window is larger than the image, which has [4, 4] elements and the",
        "use a smaller kernel_size, or padding"),
    "conv groups": (lambda: L.Conv2d(3, 8, 3, groups=2),
        "MLC0358", "3 and 8 channels are not 2 equal groups", "both are multiples of groups"),
    "batchnorm features": (lambda: L.BatchNorm1d(4)(X),
        "MLC0367", "BatchNorm1d has 4 channels, the input 3", "channels come second, after the batch: BatchNorm1d(3)"),
    "batchnorm one value": (lambda: L.BatchNorm1d(3)(mlc.ones(1, 3)),
        "MLC0363", "BatchNorm1d in training needs more than one value for each channel",
        "use larger batches, DataLoader(drop_last=True), or"),
    "batchnorm2d of 2 dims": (lambda: L.BatchNorm2d(3)(X),
        "MLC0364", "BatchNorm2d takes 4 dimensions, found 2", "the first two are the batch and the channels"),
    "layernorm shape": (lambda: L.LayerNorm(5)(X),
        "MLC0367", "layer_norm: normalized_shape [5] is not the end of shape [4, 3]",
        "normalized_shape is the end of the input's shape, as in"),
    "embedding index": (lambda: L.Embedding(5, 2)(mlc.tensor([7])),
        "MLC0340", "embedding: index 7 is out of range for axis 0 of size 5",
        "num_embeddings is greater than every index"),
    "embedding float": (lambda: L.Embedding(5, 2)(mlc.ones(3)),
        "MLC0354", "embedding: input has element type mlc.float32, expected an integer type", "convert it: x.long()"),
    "lstm input": (lambda: L.LSTM(4, 5)(mlc.ones(2, 1, 3)),
        "MLC0367", "LSTM takes 4 features, the input has 3", ""),
    "attention heads": (lambda: L.MultiheadAttention(5, 2),
        "MLC0358", "embed_dim = 5 is not divisible by num_heads = 2", "each head has embed_dim / num_heads features"),
    "attention mask": (lambda: F.scaled_dot_product_attention(*[mlc.ones(1, 2, 3, 4)] * 3, attn_mask=mlc.ones(5, 5)),
        "MLC0111", "scaled_dot_product_attention: a mask of shape [5, 5] does not broadcast to",
        "shapes broadcast from the last dimension on;"),
    "flatten then linear": (lambda: L.Sequential(L.Flatten(), L.Linear(10, 2))(mlc.ones(2, 3, 4)),
        "MLC0367", "linear: inner sizes differ: the input has 12 features, the weight takes 10",
        "make the layer for the features of its input, its last"),
    "boolean mask size": (lambda: X[mlc.tensor([True, False])],
        "MLC0366", "indexing: a mask of shape [2] picks from dimensions 0 to 0 of shape [4]",
        "x.shape has the sizes; a mask has those of the dimensions"),
    "index out": (lambda: X[5],
        "MLC0366", "index 5 is out of bounds for axis 0 with size 4",
        "x.shape has the sizes; a mask has those of the dimensions"),
    "index float": (lambda: X[mlc.ones(2)],
        "MLC0354", "indexing: the index has element type mlc.float32, expected an integer type",
        "convert it: x.long()"),
    "too many indices": (lambda: X[0, 0, 0],
        "MLC0366", "indexing: 3 indices for 2 dimensions", "x.shape has the sizes; a mask has those of the dimensions"),
    "set item shape": (lambda: X.clone().__setitem__(0, mlc.ones(5)),
        "MLC0111", "shape [5] does not broadcast to [3]", "shapes broadcast from the last dimension on;"),
    "split sizes": (lambda: X.split([1, 1]),
        "MLC0358", "split: the pieces add up to 2, the dimension has 4",
        "give sizes that add up to the dimension's, or one size for"),
    "reshape data": (lambda: mlc.tensor([[1, 2], [3]]),
        "MLC0345", "nested lists of different lengths make no array", "pad them, as nn.utils.rnn.pad_sequence does"),
    "gather int": (lambda: X.gather(1, mlc.ones(4, 1)),
        "MLC0354", "gather: index has element type mlc.float32, expected an integer type", "convert it: x.long()"),
    "scatter index": (lambda: mlc.zeros(2, 2).scatter_(0, mlc.tensor([[5]]), 1.0),
        "MLC0340", "scatter: index 5 is out of range for axis 0 of size 2",
        "indices count from 0 to the size less 1, or back from -1"),
    "einsum": (lambda: mlc.einsum("ij,jk->ik", X, X),
        "MLC0367", "einsum: sizes of 'j' differ: 3 and 4", "a letter stands for one size in all operands"),
    # dtypes
    "int mean": (lambda: mlc.tensor([1, 2]).mean(),
        "MLC0359", "mean needs floats, found mlc.int64", "cast it first: x.float()"),
    "matmul dtypes": (lambda: X @ mlc.ones(3, 2, dtype="float64"),
        "MLC0420", "matmul: a product of float32 and float64", "cast one of them, as in x.float(); numpy's arrays are"),
    "linear double": (lambda: linear()(mlc.ones(4, 3, dtype="float64")),
        "MLC0420", "linear: a product of float64 and float32", "cast one of them, as in x.float(); numpy's arrays are"),
    "bool sub": (lambda: mlc.tensor([True]) - mlc.tensor([False]),
        "MLC0359", "sub is not defined on bool", "cast it first: x.to(mlc.int64)"),
    "bitwise float": (lambda: X & X,
        "MLC0359", "bitwise_and is not defined on mlc.float32",
        "compare first, as in (x > 0) & (y > 0), or convert it:"),
    "inplace int float": (lambda: mlc.tensor([1, 2]).add_(0.5),
        "MLC0439", "a result of float32 does not fit in place of int64",
        "convert the tensor first, as in x = x.float()"),
    "inplace div int": (lambda: mlc.tensor([1, 2]).div_(2),
        "MLC0439", "a result of float32 does not fit in place of int64",
        "convert the tensor first, as in x = x.float()"),
    "where cond": (lambda: mlc.where(X, X, X),
        "MLC0362", "where: the condition is of mlc.float32, expected mlc.bool", "compare it: condition != 0"),
    "dtype name": (lambda: X.to("flaot32"),
        "MLC0342", "'flaot32' is neither an element type nor a device",
        "use one of bool, int8, int16, int32, int64, uint8, uint16,"),
    "bitshift": (lambda: X << 1,
        "MLC0359", "bitwise_left_shift is not defined on mlc.float32", "convert it: x.long()"),
    "from numpy object": (lambda: mlc.from_numpy(np.array(["a"])),
        "MLC0345", "an array of <U1 has no element type here",
        "use one of bool, int8, int16, int32, int64, uint8, uint16,"),
    "tensor of text": (lambda: mlc.tensor("hello"),
        "MLC0345", "str 'hello' is no number", "give numbers, or nested lists of them"),
    "tensor of None": (lambda: mlc.tensor([1, None]),
        "MLC0345", "NoneType None is no number", "give numbers, or nested lists of them"),
    # losses
    "ce float target": (lambda: F.cross_entropy(mlc.ones(4, 2), mlc.ones(4)),
        "MLC0367", "cross_entropy: the input and the target have shapes [4, 2] and [4]",
        "floats are a probability for each class; classes are"),
    "ce target shape": (lambda: F.cross_entropy(mlc.ones(4, 2), mlc.zeros(4, 1, dtype="int64")),
        "MLC0367", "cross_entropy: the target has shape [4, 1], expected [4]: one class for each",
        "of a column, target.squeeze(1) has the classes; of one-hot"),
    "ce class": (lambda: F.cross_entropy(mlc.ones(4, 2), mlc.full((4,), 2)),
        "MLC0340", "cross_entropy: index 2 is out of range for axis 1 of size 2",
        "classes count from 0; the input has one score for each class"),
    "ce batch": (lambda: F.cross_entropy(mlc.ones(4, 2), mlc.zeros(3, dtype="int64")),
        "MLC0367", "cross_entropy: the target has shape [3], expected [4]: one class for each",
        "of a column, target.squeeze(1) has the classes; of one-hot"),
    "bce shape": (lambda: F.binary_cross_entropy_with_logits(mlc.ones(4, 1), mlc.ones(4)),
        "MLC0367", "binary_cross_entropy_with_logits: the input and the target have shapes [4, 1]",
        "broadcast one of them first, if that is what is meant"),
    "mse broadcast": (lambda: F.mse_loss(mlc.ones(4, 1), mlc.ones(3)),
        "MLC0367", "mse_loss: the input and the target have shapes [4, 1] and [3]",
        "broadcast one of them first, if that is what is meant"),
    "loss class called with data": (lambda: L.CrossEntropyLoss(mlc.ones(4, 2), Y).backward(),
        "MLC0338", "CrossEntropyLoss has no backward: a layer computes nothing when it is made",
        "loss = nn.CrossEntropyLoss()(output, target);"),
    "reduction": (lambda: L.MSELoss(reduction="avg")(X, X),
        "MLC0360", "mse_loss: reduction = 'avg'", 'use "mean", "sum" or "none"'),
    "nll 1d": (lambda: F.nll_loss(mlc.ones(4), Y),
        "MLC0367", "nll_loss: the target has shape [4], expected []: one class for each sample",
        "of a column, target.squeeze(1) has the classes; of one-hot"),
    # modules
    "no super init": (lambda: NoSuper()(mlc.ones(2)),
        "MLC0349", "NoSuper has no forward", "define it, or call what the module holds"),
    "no forward": (lambda: NoForward()(X),
        "MLC0349", "NoForward has no forward", "define it, or call what the module holds"),
    "missing key": (lambda: linear().load_state_dict({"weight": mlc.ones(2, 3)}),
        "MLC0382", 'Missing key(s) in state_dict: "bias".',
        "strict=False leaves out names that only one of the two has"),
    "unexpected key": (
        lambda: linear().load_state_dict({"weight": mlc.ones(2, 3), "bias": mlc.ones(2), "module.x": mlc.ones(1)}),
        "MLC0382", 'Unexpected key(s) in state_dict: "module.x".',
        "strict=False leaves out names that only one of the two has"),
    "size mismatch": (lambda: linear().load_state_dict(L.Linear(4, 2).state_dict()),
        "MLC0382", "size mismatch for weight: copying a param with shape [2, 4] from checkpoint,",
        "make the model with the sizes of the one that was saved"),
    "state is model": (lambda: linear().load_state_dict(linear()),
        "MLC0382", "a state is a dict of arrays by name, found Linear", ""),
    "linear args": (lambda: L.Linear(3),
        "MLC0321", "Linear: missing a required argument: 'out_features'",
        "it takes in_features, out_features, bias=True, device=None,"),
    "dropout p": (lambda: L.Dropout(50),
        "MLC0360", "p = 50 is no probability", "it is from 0 to 1, as in p=0.5"),
    # optimizers
    "opt params call": (lambda: Optim.SGD(linear().parameters, lr=0.1),
        "MLC0383", "SGD takes parameters, found the method parameters itself", "SGD(model.parameters(), lr=...)"),
    "opt empty": (lambda: Optim.Adam([]),
        "MLC0378", "Adam was given no parameters", "an iterator such as model.parameters() is empty once it has"),
    "opt module": (lambda: Optim.Adam(linear(), lr=0.1),
        "MLC0383", "Adam takes parameters, found Linear", "Adam(model.parameters(), lr=...)"),
    "opt tensor": (lambda: Optim.Adam(leaf(2)),
        "MLC0383", "Adam takes parameters in a list, found one parameter", "Adam([w], lr=...)"),
    "opt no leaf": (lambda: Optim.SGD([leaf(2) * 2], lr=0.1),
        "MLC0378", "only leaves can be trained, and this is the result of an operation",
        "x.detach().requires_grad_() is a leaf of the same elements"),
    "opt negative lr": (lambda: Optim.Adam(linear().parameters(), lr=-1),
        "MLC0383", "lr = -1 is not in [0, inf)", ""),
    "opt betas": (lambda: Optim.Adam(linear().parameters(), betas=(1.0, 0.9)),
        "MLC0383", "betas[0] = 1.0 is not in [0, 1)", ""),
    "opt unknown": (lambda: Optim.Adam(linear().parameters(), learning_rate=0.1),
        "MLC0321", "Adam: got an unexpected keyword argument 'learning_rate'",
        "it takes lr=0.001, betas=(0.9, 0.999), eps=1e-08,"),
    "opt nesterov": (lambda: Optim.SGD(linear().parameters(), lr=0.1, nesterov=True),
        "MLC0383", "nesterov needs a momentum and no dampening", "SGD(..., momentum=0.9, nesterov=True)"),
    "opt twice": (lambda: Optim.SGD([w := leaf(2), w], lr=0.1),
        "MLC0378", "a parameter is held twice", "model.parameters() has shared parameters once"),
    "opt group twice": (lambda: Optim.SGD([w := leaf(2)], lr=0.1).add_param_group({"params": w}),
        "MLC0378", "a parameter is held twice", "model.parameters() has shared parameters once"),
    "opt state of other": (lambda: sgd().load_state_dict(Optim.Adam([leaf(2)]).state_dict()),
        "MLC0377", "the state is of groups of [1] parameters, the optimizer's are of [2]",
        "make the optimizer with the parameters of the one that was"),
    "opt state structure": (lambda: sgd().load_state_dict({"lr": 0.1}),
        "MLC0377", "the state of an optimizer has an entry 'state', and this has none",
        "load the result of state_dict of an optimizer that holds"),
    "lbfgs": (lambda: Optim.LBFGS([leaf(2)]).step(),
        "MLC0769", "LBFGS computes the loss several times in a step, and needs a closure for that",
        "opt.step(closure)"),
    "scheduler without optimizer": (lambda: Optim.lr_scheduler.StepLR(0.1, 10),
        "MLC0440", "StepLR takes an optimizer, found float",
        "StepLR(mlc.optim.Adam(model.parameters(), lr=1e-3), ...)"),
    "scheduler args": (lambda: Optim.lr_scheduler.StepLR(sgd()),
        "MLC0321", "StepLR: missing a required argument: 'step_size'",
        "it takes optimizer, step_size, gamma=0.1, last_epoch=-1"),
    "onecycle": (lambda: Optim.lr_scheduler.OneCycleLR(sgd(), max_lr=0.1),
        "MLC0441", "OneCycleLR takes total_steps, or epochs and steps_per_epoch, each at least 1", ""),
    "plateau": (lambda: Optim.lr_scheduler.ReduceLROnPlateau(sgd()).step(),
        "MLC0321", "step: missing a required argument: 'metrics'", "it takes metrics, epoch=None"),
    "clip of generator": (lambda: L.utils.clip_grad_norm_(5, 1.0),
        "MLC0446", "clip_grad_norm_ takes tensors, found int", "clip_grad_norm_(model.parameters(), ...)"),
    # data
    "dataset shuffle no len": (lambda: list(DataLoader(NoLen(), shuffle=True)),
        "MLC0421", "RandomSampler: data_source is NoLen", ""),
    "ragged": (lambda: list(DataLoader(Ragged(), batch_size=2)),
        "MLC0700", "default_collate: samples 0 and 1 of the batch have shapes [1] and [2]",
        "make them alike in the dataset, or pad them in a collate_fn"),
    "none": (lambda: list(DataLoader(Nones(), batch_size=2)),
        "MLC0701", "default_collate: NoneType cannot be collated",
        "samples are tensors, numpy arrays, numbers, strings, and"),
    "iterable shuffle": (lambda: DataLoader(NoIter(), shuffle=True),
        "MLC0702", "DataLoader: the order of an IterableDataset is its own, so shuffle cannot be", ""),
    "no iter": (lambda: list(DataLoader(NoIter())),
        "MLC0711", "NoIter does not define __iter__", ""),
    "batch 0": (lambda: DataLoader(TensorDataset(X), batch_size=0),
        "MLC0704", "batch_size = 0, expected at least 1", ""),
    "workers -1": (lambda: DataLoader(TensorDataset(X), num_workers=-1),
        "MLC0704", "num_workers = -1, expected at least 0", ""),
    "sampler and shuffle": (lambda: DataLoader(TensorDataset(X), sampler=[0, 1], shuffle=True),
        "MLC0702", "DataLoader: sampler makes the order, so shuffle cannot be given", ""),
    "tensors of other lengths": (lambda: TensorDataset(X, mlc.ones(3)),
        "MLC0705", "TensorDataset: the tensors have to have one first size, found shapes [4, 3],", ""),
    "random split": (lambda: random_split(TensorDataset(X), [3, 3]),
        "MLC0705", "random_split: the lengths [3, 3] add up to 6, the dataset has 4 samples",
        "give lengths whose sum is the dataset's, or fractions whose"),
    "generator": (lambda: DataLoader(TensorDataset(X), generator="cpu"),  # type: ignore[arg-type]
        "MLC0713", "generator is str 'cpu'", "it may be an integer seed, an mlc.Generator, or None for"),
    "dataset is list of models": (lambda: DataLoader(5),
        "MLC0711", "a int is no dataset: it has no __getitem__", "what can only be iterated derives from"),
    "weights": (lambda: WeightedRandomSampler([1.0, -1.0], 2),
        "MLC0704", "WeightedRandomSampler: the weights have to be a vector of numbers of at least", ""),
    # other
    "seed": (lambda: mlc.manual_seed("a"),  # type: ignore[arg-type]
        "MLC0355", "seed is str 'a', expected an integer", ""),
    "device": (lambda: X.to("gpu0"),
        "MLC0342", "'gpu0' is neither an element type nor a device",
        "use one of bool, int8, int16, int32, int64, uint8, uint16,"),
    "zeros float size": (lambda: mlc.zeros(2.5),
        "MLC0355", "zeros: size is float 2.5, expected an integer", ""),
    "randint": (lambda: mlc.randint(5, 2, (3,)),
        "MLC0360", "randint: there is no integer from 5 up to 2",
        "the numbers are from low up to high, without high: low <"),
    "inverse rect": (lambda: mlc.linalg.inv(X),
        "MLC0367", "linalg.inv: the matrix has 4 rows and 3 columns, which must be equal",
        "mlc.linalg.pinv is for all matrices"),
    "topk": (lambda: X.topk(9),
        "MLC0360", "topk: k = 9 of 3 elements", "k is at most the size of the dimension"),
    "interpolate": (lambda: F.interpolate(mlc.ones(1, 1, 4, 4)),
        "MLC0353", "interpolate needs either size or scale_factor", ""),
    "multinomial": (lambda: mlc.multinomial(mlc.tensor([0.0, 1.0]), 2),
        "MLC0360", "multinomial: 2 indices are drawn where a row has 1 positive weights",
        "draw fewer, or with replacement=True"),
    "one_hot": (lambda: F.one_hot(mlc.tensor([3]), num_classes=2),
        "MLC0340", "one_hot: index 3 is out of range for axis 0 of size 2", "num_classes is greater than every class"),
    "max_pool": (lambda: F.max_pool2d(mlc.ones(1, 1, 2, 2), 5),
        "MLC0367", "max_pool2d: a window is larger than the image, which has [2, 2] elements and",
        "use a smaller kernel_size, or padding"),
    "pad": (lambda: F.pad(X, (1,)),
        "MLC0357", "pad = (1,) is not one pair for each of at most 2 dimensions", ""),
    "load missing": (lambda: mlc.load("missing.pt"),
        "MLC0392", "cannot read missing.pt: No such file or directory", "the current folder is"),
    "save object": (lambda: mlc.save({"f": open}, io.BytesIO()),
        "MLC0764", "mlc.save cannot write a builtin_function_or_method",
        "save tensors, arrays, numbers, strings, lists, tuples,"),
    "autocast device": (lambda: mlc.autocast("gpu").__enter__(),
        "MLC0782", "there are no devices of type 'gpu'", 'use "cpu" or "cuda"'),
    "scaler order": (lambda: mlc.amp.GradScaler("cpu").update(),
        "MLC0783", "no gradients were unscaled since the last update", "call scaler.step(optimizer) first"),
}
"""The mistake, the code, the beginning of the last line of the message, and that of the hint."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str) -> None:
    mistake, code, message, hint = MISTAKES[name]
    with pytest.raises(UserError) as caught:
        mistake()
    error, line = caught.value, mistake.__code__.co_firstlineno
    assert error.code == code and error.message.split("\n")[-1].strip().startswith(message), str(error)
    assert (error.hint or "").startswith(hint) and str(error).count("error[") == 1, str(error)
    assert error.loc.file == __file__ and error.loc.line == line, str(error)
    assert (mlc.ones(2) + 1).tolist() == [2, 2], "something was left behind"
