"""Programs for torch.autograd and torch.func, run with nothing changed but their imports: both give the same arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((3, 2)).astype(np.float32)

FUNCTIONS = """
import torch
from torch import nn
from torch.autograd import Function

class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None, scale=1):
        ctx.save_for_backward(x, weight, bias)
        ctx.scale = scale
        out.append(ctx.needs_input_grad)
        return scale * (x @ weight) + (0 if bias is None else bias)

    @staticmethod
    def backward(ctx, g):
        x, weight, bias = ctx.saved_tensors
        out.append(ctx.needs_input_grad)
        gx = ctx.scale * (g @ weight.t()) if ctx.needs_input_grad[0] else None
        gw = ctx.scale * (x.t() @ g) if ctx.needs_input_grad[1] else None
        return gx, gw, g, None                    # g is reduced to the shape of the bias

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.tensor(W)), nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return Linear.apply(x, self.weight, self.bias, 3)

class Parts(Function):
    @staticmethod
    def forward(x, k):
        return x.sin() * k, x.argmax(), x.cos(), "text", x * 1
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(inputs[0], output[0], output[2])
        ctx.mark_non_differentiable(output[1])
    @staticmethod
    def backward(ctx, g, number, h, text, same):
        x, sine, cosine = ctx.saved_tensors
        out.append((number is None, text is None))
        return g * cosine * ctx.k - h * sine / ctx.k + same, None

class Sparse(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3
    @staticmethod
    def vjp(ctx, g, h):
        out.append((g is None, h is None))
        return 2 * g if h is None else 3 * h

class Nothing(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return None

class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x, x
    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + h

class Counted(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        out.append(g)
        return g + 1

layer, x = Layer(), torch.tensor(X, requires_grad=True)
layer(x).pow(2).sum().backward()
out += [x.grad, layer.weight.grad, layer.bias.grad]
x = torch.tensor(X, requires_grad=True)
a, n, b, text, same = Parts.apply(x, 2.0)
out += [a, n, b, text, same, n.requires_grad, b.requires_grad, a.grad_fn.name(), a.grad_fn.k, a.is_leaf]
g, = torch.autograd.grad((a * b).sum() + (same * same).sum(), x, create_graph=True)
gg, = torch.autograd.grad((g * g).sum(), x, create_graph=True)
out += [g, gg, *torch.autograd.grad(gg.sum(), x)]
Sparse.apply(x)[0].sum().backward()
Sparse.apply(x)[1].sum().backward()
out.append(x.grad)
x.grad = None
first, second = Same.apply(x)
(first * second).sum().backward()
out += [first is x, x.grad]
Nothing.apply(Counted.apply(x * 1)).sum().backward()
Counted.apply(Counted.apply(x)).sum().backward(retain_graph=True)
out.append(x.grad)
with torch.no_grad():
    out += [Parts.apply(x, 1.0)[0].requires_grad, Parts.apply(x, 1.0)[4].requires_grad]
"""

STRAIGHT_THROUGH = """
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

class Round(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g

class Reverse(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x) if hasattr(x, "view_as") else x
    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None

net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
heads = nn.Linear(2, 1), nn.Linear(2, 1)
parameters = [p for m in (net, *heads) for p in m.parameters()]
for p in parameters:
    p.data = torch.tensor((0.5 * rng.standard_normal(tuple(p.shape))).astype("float32"))
optimizer = torch.optim.SGD(parameters, lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    features = net(torch.tensor(X))
    loss = (heads[0](Round.apply(4 * features)) - 1).pow(2).mean() + heads[1](Reverse.apply(features, 0.5)).abs().mean()
    loss.backward()
    optimizer.step()
    out.append(loss)
"""

SAVED = """
import torch
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x + 0 * y

x = torch.tensor(X, requires_grad=True)
w = torch.tensor(W, requires_grad=True)
with saved_tensors_hooks(lambda t: 2 * t, lambda t: t / 2):
    y = (x @ w).tanh() * 3
    z = Square.apply(y).sum()
g, = torch.autograd.grad(z, w, create_graph=True)
(g * g).sum().backward()
out += [g, w.grad, x.grad]
with save_on_cpu(pin_memory=False):
    z = ((x @ w) ** 2).sum()
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = z * z
z.backward()
out += [w.grad]
store = []
def pack(t):
    store.append(t.detach())
    return len(store) - 1
with saved_tensors_hooks(pack, lambda i: store[i]):
    z = (w * w).sum()
z.backward(retain_graph=True)
z.backward()
out += [w.grad]
"""

NODES = """
import torch
from torch.autograd.graph import register_multi_grad_hook

x = torch.tensor(X, requires_grad=True)
w = torch.tensor(W, requires_grad=True)
v = torch.tensor(W, requires_grad=True)
y = x @ w
z = y.exp().sum()
out += [y.grad_fn is not None, x.grad_fn is None, len(y.grad_fn.next_functions)]
leaf = y.grad_fn.next_functions[1][0]
out += [leaf.variable is w, leaf.next_functions]
before = z.grad_fn.register_prehook(lambda g: (2 * g[0],))
node = z.grad_fn.next_functions[0][0]
node.register_hook(lambda gi, go: out.append(go[0]))
node.register_hook(lambda gi, go: (gi[0] + 1,))
node.metadata["name"] = 3
out.append(z.grad_fn.next_functions[0][0].metadata)
leaf.register_hook(lambda gi, go: out.append(go[0]))
register_multi_grad_hook([x, w, v, y], lambda found: out.extend(g is None for g in found))
register_multi_grad_hook([x, w], lambda g: out.append("once"), mode="any")
handle = register_multi_grad_hook([y, w], lambda found: out.extend(found))
z.backward(retain_graph=True)
out += [x.grad, w.grad]
before.remove(), handle.remove()
z.backward(inputs=[x])
out += [x.grad, w.grad]
edge = torch.autograd.graph.get_gradient_edge(y)
out += [edge.node is y.grad_fn, edge.output_nr, torch.autograd.graph.get_gradient_edge(w).node is leaf]
"""

CHECKPOINTS = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

net = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(3, 3), nn.Tanh())))
for p in net.parameters():
    p.data = torch.tensor(rng.standard_normal(tuple(p.shape)).astype("float32"))
x = torch.tensor(X, requires_grad=True)
calls = []
def block(x, keep, scale=1):
    calls.append(1)
    return net[:4](x) * scale + (x if keep else 0), 5
for reentrant in (False, True):
    y, five = checkpoint(block, x, True, use_reentrant=reentrant)
    out += [y, five, len(calls)]
    y.pow(2).sum().backward()
    out += [len(calls), x.grad, *(p.grad for p in net[:4].parameters())]
y = checkpoint_sequential(net, 3, x, use_reentrant=False)
y.sum().backward()
out += [y, x.grad, *(p.grad for p in net.parameters())]
def outer(x):
    return checkpoint(lambda x: x.sin() * x, checkpoint(torch.exp, x, use_reentrant=False), use_reentrant=False)
y = checkpoint(outer, x, use_reentrant=False).sum()
g, = torch.autograd.grad(y, x, create_graph=True)
(g * g).sum().backward()
out += [g, x.grad]
with torch.no_grad():
    out.append(checkpoint(block, x, False, use_reentrant=False)[0].requires_grad)
"""

FUNCTIONALS = """
import torch
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

x, w = torch.tensor(X), torch.tensor(W)
both = lambda x, w: (torch.tanh(x @ w), (x * x).sum(0))
one = lambda x: (x ** 3).sum(1)
number = lambda x, w: torch.tanh(x @ w).pow(2).sum()
for vectorize in (False, True):
    out += [row for rows in jacobian(both, (x, w), vectorize=vectorize) for row in rows]
    out += [jacobian(one, x, vectorize=vectorize), *jacobian(one, (x,), vectorize=vectorize)]
    out += [part for row in hessian(number, (x, w), vectorize=vectorize) for part in row]
    out.append(hessian(lambda w: number(x, w), w, vectorize=vectorize))
out += [jacobian(one, x, vectorize=True, strategy="forward-mode")]
y, found = vjp(both, (x, w), (torch.ones(4, 2), torch.ones(3)))
out += [*y, *found]
y, found = jvp(both, (x, w), (x, w))
out += [*y, *found, vjp(lambda x: x.sum(), x)[1], jvp(lambda x: x * w, torch.tensor(2.0))[1]]
for product in (hvp, vhp):
    y, found = product(number, (x, w), (x, 2 * w))
    out += [y, *found, product(lambda w: number(x, w), w, w)[1]]
leaf = torch.tensor(W, requires_grad=True)
for program in (lambda w: jacobian(lambda w: (w ** 3).sum(0), w, create_graph=True),
                lambda w: hessian(lambda w: (w ** 4).sum(), w, create_graph=True),
                lambda w: hvp(lambda w: (w ** 4).sum(), w, w.detach(), create_graph=True)[1],
                lambda w: jvp(lambda w: w ** 3, w, w.detach(), create_graph=True)[1]):
    out += torch.autograd.grad((program(leaf) ** 2).sum(), leaf)
out.append(jacobian(one, leaf.t()).requires_grad)
"""

TRANSFORMS = """
import torch
from torch.func import (functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize,
                        stack_module_state, vjp, vmap)

x, w = torch.tensor(X), torch.tensor(W)
f = lambda x, w: torch.tanh(x @ w)
g = lambda x, w: (f(x, w), {"a": (x * 2).sum()})
number = lambda x, w: f(x, w).pow(2).sum()
out += [vmap(f, in_dims=(0, None))(x, w), vmap(f, in_dims=(0, None), out_dims=1, chunk_size=3)(x, w)]
out += [*torch.vmap(lambda x: (x * 2, x.sum()), chunk_size=3)(x), jacrev(f)(x, w)]
out += [jacrev(f, argnums=(0, 1), chunk_size=4)(x, w)[1], hessian(number)(x, w), grad(number, argnums=1)(x, w)]
for transform in (jacrev, jacfwd):
    rows, aux = transform(g, has_aux=True)(x, w)
    out += [rows, aux["a"]]
out += [*grad_and_value(number)(x, w)]
slope, (value, aux) = grad_and_value(lambda x, w: (number(x, w), x.sum()), has_aux=True)(x, w)
y, pull, rest = vjp(g, x, w, has_aux=True)
out += [slope, value, aux, y, *pull(torch.ones_like(y)), rest["a"]]
y, tangent, rest = jvp(g, (x, w), (x, w), has_aux=True)
out += [y, tangent, rest["a"], linearize(f, x, w)[1](x, w)]
models = [torch.nn.Linear(3, 2) for _ in range(4)]
for i, m in enumerate(models):
    m.weight.data, m.bias.data = w.T * (i + 1), w[0] + i
parameters, buffers = stack_module_state(models)
call = lambda p, b, x: functional_call(models[0], (p, b), (x,))
out.append(vmap(call, in_dims=(0, 0, None))(parameters, buffers, x))
own = dict(models[1].named_parameters())
loss = lambda p, x, y: ((functional_call(models[0], p, x) - y) ** 2).mean()
each = vmap(grad(loss), in_dims=(None, 0, 0))({name: p.detach() for name, p in own.items()}, x, f(x, w))
functional_call(models[0], own, (x,)).sum().backward()
out += [each["weight"], each["bias"], models[1].weight.grad, models[0].weight.grad is None]
"""

PROGRAMS = {"functions": FUNCTIONS, "straight through": STRAIGHT_THROUGH, "saved tensors": SAVED, "nodes": NODES,
            "checkpoints": CHECKPOINTS, "functionals": FUNCTIONALS, "transforms": TRANSFORMS}


class Out(list[Any]):
    """The values that a program puts out, as they are then: PyTorch changes gradients in place."""

    def append(self, x: Any) -> None:
        self.extend([x])

    def extend(self, xs: Iterable[Any]) -> None:
        super().extend(np.array(x.detach().numpy()) if hasattr(x, "detach") else x for x in xs)

    def __iadd__(self, xs: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(xs)
        return self


def run(program: str) -> Out:
    names: dict[str, Any] = {"X": X, "W": W, "rng": np.random.default_rng(2), "out": Out()}
    exec(compile(program, "program.py", "exec"), names)  # noqa: S102
    return names["out"]  # type: ignore[no-any-return]


def with_mlc(program: str) -> str:
    ours = re.sub(r"(?m)^import torch$", "import mlc as torch", re.sub(r"(import|from) torch\.", r"\1 mlc.", program))
    return re.sub(r"(?m)^from torch import", "from mlc import", ours)


@pytest.mark.filterwarnings("ignore")                      # PyTorch's own
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_pytorch(name: str) -> None:
    found, wanted = run(with_mlc(PROGRAMS[name])), run(PROGRAMS[name])
    assert len(found) == len(wanted)
    for i, (ours, theirs) in enumerate(zip(found, wanted)):
        if isinstance(theirs, np.ndarray):
            assert ours.shape == theirs.shape, i
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5, err_msg=str(i))
        else:
            assert ours == theirs, i
