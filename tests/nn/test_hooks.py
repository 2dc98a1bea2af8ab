"""Hooks of modules, and the methods of torch.nn.Module, on the same programs as in PyTorch."""
from __future__ import annotations

import copy

import pytest

import mlc
from mlc import nn
from tests.nn.both import same

pytestmark = pytest.mark.usefixtures("interpreted")


def test_hooks_around_calls_and_gradients() -> None:
    same("""
m, x = filled(nn.Linear(4, 3)), T(5, 4).requires_grad_()
handles = [m.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
           m.register_forward_hook(lambda m, args, y: y + 1),
           m.register_full_backward_hook(lambda m, gi, go: (out.extend([gi[0], go[0]]), (gi[0] * 3,))[1]),
           m.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))]
y = m(x)
y.pow(2).sum().backward()
out += [y, x.grad.clone(), m.weight.grad]
x.grad = None
for h in handles:
    h.remove()
out.append(m(x))
order = []
m.register_forward_hook(lambda *_: order.append(1))
m.register_forward_hook(lambda *_: order.append(2), prepend=True)
m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"input": kwargs["input"] * 2}), with_kwargs=True)
out += [m(input=x), order]

class Pair(nn.Module):
    def forward(self, a, n, b):
        return a * n, b

def seen(m, gi, go):
    out.extend([len(gi), gi[1] is None, gi[0], go[1]])
pair = Pair()
pair.register_full_backward_hook(seen)
a, b = pair(x, 2, T(5, 4).requires_grad_())
(a.sum() + 3 * b.sum()).backward()
broken = nn.Linear(2, 2)
broken.register_forward_hook(lambda m, args, y: out.append(y), always_call=True)
try:
    broken(T(3, 3))
except (RuntimeError, ValueError):
    out.append("failed")
with torch.nn.modules.module.register_module_forward_hook(lambda m, args, y: y * 10):
    out.append(nn.ReLU()(T(3)))
""")


def test_states_and_their_hooks() -> None:
    same("""
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.count, self.inner = 3, nn.Linear(2, 1)
    def get_extra_state(self):
        return self.count
    def set_extra_state(self, state):
        self.count = state

a, b = Counter(), Counter()
a.count = 7
out += [list(a.state_dict()), a.state_dict(prefix="x.")["x._extra_state"], b.load_state_dict(a.state_dict()), b.count]
renamed = {name.replace("inner", "old"): x for name, x in a.state_dict().items()}
def rename(m, state, prefix, *rest):
    for name in list(state):
        state[name.replace("old", "inner")] = state.pop(name)
with b.register_load_state_dict_pre_hook(rename):
    out.append(b.load_state_dict(renamed))
b.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
out.append(b.load_state_dict({}, strict=False))
a.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("inner.bias") and None)
out.append(list(a.state_dict()))
weight = nn.Linear(2, 1).weight
plain = nn.Linear(2, 1, bias=False)
plain.load_state_dict({"weight": T(1, 2)}, assign=True)
out.append(plain.weight)
class Old(nn.Linear):
    def _load_from_state_dict(self, state_dict, prefix, *rest):
        state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel").t()
        super()._load_from_state_dict(state_dict, prefix, *rest)
converted = nn.Sequential(Old(2, 3, bias=False), nn.ReLU())
converted.load_state_dict({"0.kernel": T(2, 3)})
out.append(converted[0].weight)
try:
    nn.Linear(2, 1).load_state_dict({"wieght": T(1, 2)})
except (RuntimeError, ValueError) as error:
    out += [f'{what} key(s) in state_dict: {names}.' in str(error)
            for what, names in (("Missing", '"weight", "bias"'), ("Unexpected", '"wieght"'))]
""")


def test_parts_by_name_and_printed_forms() -> None:
    same("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.ReLU(inplace=True)])
        self.scale = nn.Parameter(torch.ones(2))
        self.norm = nn.BatchNorm2d(4)
        self.add_module("head", nn.Sequential(nn.Flatten(), nn.LazyLinear(5), nn.Dropout(0.2), nn.Softmax(dim=1)))
        self.register_buffer("mean", torch.zeros(1))
        self.again = self.norm

net = Net()
out += [net, [n for n, _ in net.named_modules()], [n for n, _ in net.named_modules(remove_duplicate=False)],
        [n for n, _ in net.named_parameters(prefix="p", recurse=False)],
        [n for n, _ in net.named_buffers() if "key" not in n],
        [n for n, _ in net.named_children()], list(net.state_dict()), tuple(net.get_parameter("layers.0.weight").shape),
        net.get_buffer("norm.running_mean"), net.get_submodule("head.2"), hasattr(net, "nothing")]
net.set_submodule("head.2", nn.Identity())
net.head[1](torch.ones(2, 7))
net.head.extra = nn.Tanh()
out += [net.head, len(net.head), net.double().norm.weight.dtype is torch.float64,
        net.type(torch.float32).scale.dtype is torch.float32]
for name in ("get_parameter", "get_buffer", "get_submodule"):
    try:
        getattr(net, name)("layers.9.x")
    except AttributeError:
        out.append(name)
""")


def test_a_module_with_hooks_is_copied_and_compiled() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[0].register_forward_hook(lambda m, args, y: y * 0 + 3)
    assert copy.deepcopy(model)(mlc.ones(2)).tolist() == [3, 3]
    assert mlc.compile(model)(mlc.ones(2)).tolist() == [3, 3]
    model.compile()
    model(mlc.ones(2)).sum().backward()
    assert model[0].weight.grad.tolist() == [[0, 0], [0, 0]]
    model[0].register_full_backward_hook(lambda m, gi, go: None)
    with pytest.raises(mlc.UserError, match="MLC0737"):
        mlc.grad(lambda m, x: m(x).sum())(model, mlc.ones(2))


def test_lazy_layers_keep_their_parameters() -> None:
    layer = nn.LazyConv2d(3, 2)
    weight, saved = layer.weight, nn.Conv2d(5, 3, 2).state_dict()
    layer.load_state_dict(saved)
    assert type(layer) is nn.Conv2d and layer.weight is weight and weight.shape == (3, 5, 2, 2)
    with pytest.raises(mlc.UserError, match="MLC0741"):
        mlc.compile(lambda m, x: m(x))(nn.LazyLinear(3), mlc.ones(2))
