"""Gradients of each sample, by a loop and by vmap over grad."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, grad_and_value, vmap


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.fc1 = nn.Linear(8 * 4 * 4, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def loss_fn(predictions, targets):
    return F.nll_loss(predictions, targets)


torch.manual_seed(0)
num_models, batch_size = 3, 6
data = torch.randn(batch_size, 1, 12, 12)
targets = torch.randint(10, (batch_size,))
model = SimpleCNN()
predictions = model(data)
loss = loss_fn(predictions, targets)
loss.backward()


def compute_grad(sample, target):
    prediction = model(sample.unsqueeze(0))
    return torch.autograd.grad(loss_fn(prediction, target.unsqueeze(0)), list(model.parameters()))


sample_grads = [compute_grad(data[i], targets[i]) for i in range(batch_size)]
per_sample_grads = [torch.stack(shards) for shards in zip(*sample_grads)]
print(per_sample_grads[0].shape)

params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return loss_fn(predictions, target.unsqueeze(0))


ft_compute_sample_grad = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))
ft_per_sample_grads = ft_compute_sample_grad(params, buffers, data, targets)
for per_sample_grad, ft_per_sample_grad in zip(per_sample_grads, ft_per_sample_grads.values()):
    assert torch.allclose(per_sample_grad, ft_per_sample_grad, atol=3e-3, rtol=1e-5)
for name, p in model.named_parameters():
    assert torch.allclose(ft_per_sample_grads[name].mean(0), p.grad, atol=1e-5), name
norms = torch.stack([g.flatten(1).norm(dim=1) for g in ft_per_sample_grads.values()]).norm(dim=0)
print(norms)
clipped = {k: torch.einsum("n,n...->...", (1.0 / norms).clamp(max=1.0), g) for k, g in ft_per_sample_grads.items()}
print(clipped["fc2.bias"])
g, value = grad_and_value(compute_loss)(params, buffers, data[0], targets[0])
print(value, g["conv1.bias"])
