"""Weights are removed."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 8, 5)
        self.fc1 = nn.Linear(8 * 4 * 4, 20)
        self.fc2 = nn.Linear(20, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        return self.fc2(F.relu(self.fc1(x)))


model = LeNet()
x = torch.linspace(0, 30, 2 * 28 * 28).sin().view(2, 1, 28, 28)
model(x)
drawn = prune.random_unstructured(nn.Conv2d(1, 6, 5), name="weight", amount=0.3)
print(int((drawn.weight_mask == 0).sum()))
module = model.conv1
prune.l1_unstructured(module, name="weight", amount=0.3)
print([n for n, _ in module.named_parameters()], [n for n, _ in module.named_buffers()])
print(int((module.weight_mask == 0).sum()), prune.is_pruned(module))
prune.l1_unstructured(module, name="bias", amount=3)
print(int((module.bias == 0).sum()))
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
print(sum(bool((w == 0).all()) for w in module.weight))
print(sorted(model.state_dict()))
loss = model(x).square().mean()
loss.backward()
print(bool((module.weight_orig.grad[module.weight_mask == 0] == 0).all()))
prune.remove(module, "weight")
print([n for n, _ in module.named_parameters()], int((module.weight == 0).sum()) > 70)

model = LeNet()
model(x)
for name, module in model.named_modules():
    if isinstance(module, torch.nn.Conv2d):
        prune.l1_unstructured(module, name="weight", amount=0.2)
    elif isinstance(module, torch.nn.Linear):
        prune.l1_unstructured(module, name="weight", amount=0.4)
print(dict(model.named_buffers()).keys())
model = LeNet()
model(x)
parameters_to_prune = ((model.conv1, "weight"), (model.conv2, "weight"), (model.fc1, "weight"), (model.fc2, "weight"))
prune.global_unstructured(parameters_to_prune, pruning_method=prune.L1Unstructured, amount=0.2)
zeros = sum(float(torch.sum(m.weight == 0)) for m, _ in parameters_to_prune)
print("Global sparsity: {:.2f}%".format(100. * zeros / sum(m.weight.nelement() for m, _ in parameters_to_prune)))


class FooBarPruningMethod(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


FooBarPruningMethod.apply(model.fc2, "bias")
print(model.fc2.bias_mask)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), torch.tensor([1, 2]))
    loss.backward()
    optimizer.step()
print(loss.item())
