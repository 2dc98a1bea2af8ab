"""Several models at once, by vmap over their stacked parameters."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, stack_module_state, vmap


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)
        self.fc2 = nn.Linear(8, 4)

    def forward(self, x):
        x = x.flatten(1)
        return self.fc2(F.relu(self.norm(self.fc1(x))))


num_models = 3
data = torch.randn(6, 5, 1, 4, 4)
targets = torch.randint(4, (6, 5))
models = [SimpleMLP() for _ in range(num_models)]
minibatches = data[:num_models]
predictions = torch.stack([model(minibatch) for model, minibatch in zip(models, minibatches)])
params, buffers = stack_module_state(models)
print({k: tuple(v.shape) for k, v in params.items()}, buffers)
base_model = copy.deepcopy(models[0])
base_model = base_model.to("meta") if hasattr(torch, "no_meta") else base_model


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


vmapped = vmap(fmodel)(params, buffers, minibatches)
print(torch.allclose(predictions, vmapped, atol=1e-5))
same = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, minibatches[0])
print(same.mean(dim=(1, 2)))


def loss(params, x, y):
    return F.cross_entropy(fmodel(params, buffers={}, x=x), y)


params = {k: v.detach() for k, v in params.items()}
for step in range(6):
    grads = vmap(grad(loss), in_dims=(0, None, None))(params, data[step], targets[step])
    params = {k: p - 0.1 * grads[k] for k, p in params.items()}
    print(vmap(loss, in_dims=(0, None, None))(params, data[step], targets[step]))
print(vmap(torch.dot, in_dims=(0, 1))(torch.ones(3, 2), torch.arange(6.).view(2, 3)))
print(vmap(lambda x, s: (x * s).sum(), in_dims=({"a": 0}["a"], None), chunk_size=2)(torch.arange(8.).view(4, 2), 2.0))
print(vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None), out_dims=1)(torch.arange(3.), torch.arange(2.)))
