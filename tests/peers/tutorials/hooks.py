"""Hooks on modules, tensors and gradients."""
from collections import defaultdict

import torch
import torch.nn as nn

activation = {}


def get_activation(name):
    def hook(model, input, output):
        activation[name] = output.detach()
    return hook


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.head = nn.Linear(3, 2)

    def forward(self, x, scale=1.0):
        return self.head(self.encoder(x)) * scale


net = Net()
x = torch.linspace(-1, 1, 12).view(3, 4)
net(x)
handles = [m.register_forward_hook(get_activation(n)) for n, m in net.named_modules() if isinstance(m, nn.Linear)]
net(x)
print({k: v.shape for k, v in activation.items()}, activation["head"])
for h in handles:
    h.remove()
calls = []
net.register_forward_pre_hook(lambda m, args: calls.append(("pre", len(args))))
net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": kwargs.get("scale", 1.0) * 2}), with_kwargs=True)
net.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["scale"], with_kwargs=True)
print(net(x, scale=0.5).mean(), calls)
norms = defaultdict(list)
for name, p in net.named_parameters():
    p.register_hook(lambda g, name=name: norms[name].append(round(g.norm().item(), 4)))
net.encoder[0].weight.register_hook(lambda g: g.clamp(-0.01, 0.01))


def backward_hook(module, grad_input, grad_output):
    calls.append(("backward", tuple(grad_output[0].shape), grad_input[0].shape))
    return (grad_input[0] * 0.5,)


handle = net.head.register_full_backward_hook(backward_hook)
net.head.register_full_backward_pre_hook(lambda m, g: calls.append("backward pre"))
net(x).square().sum().backward()
print(calls[1:], sorted(norms.items()))
print(net.encoder[0].weight.grad.abs().max())
handle.remove()
optimizer_dict = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}


def optimizer_hook(parameter):
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)
before = net.head.bias.detach().clone()
net(x).sum().backward()
print(net.head.bias.detach() - before, net.head.bias.grad)
saved = []


def pack(t):
    saved.append(t.shape)
    return t.numpy() if not t.requires_grad else t.detach().numpy()


with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
    a = torch.ones(3, requires_grad=True)
    y = a.exp() * torch.arange(3.)
y.sum().backward()
print(a.grad, len(saved) > 0)


class Debug(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        print("grad", g.norm())
        return g


(Debug.apply(a) ** 2).sum().backward()
