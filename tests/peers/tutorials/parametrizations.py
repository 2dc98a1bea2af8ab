"""Parameters that are symmetric, orthogonal, positive, normalized."""
import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import parametrizations


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


class Positive(nn.Module):
    def forward(self, x):
        return nn.functional.softplus(x)

    def right_inverse(self, y):
        return y.expm1().log()


layer = nn.Linear(3, 3)
layer(torch.ones(1, 3))
parametrize.register_parametrization(layer, "weight", Symmetric())
print(torch.allclose(layer.weight, layer.weight.T), parametrize.is_parametrized(layer), layer)
Z = torch.arange(9.).view(3, 3)
layer.weight = Z + Z.T
print(layer.weight, list(dict(layer.named_parameters())))
orth = nn.Linear(3, 3)
orth(torch.ones(1, 3))
parametrize.register_parametrization(orth, "weight", Skew())
parametrize.register_parametrization(orth, "weight", MatrixExponential())
X = orth.weight
print(torch.dist(X.T @ X, torch.eye(3)) < 1e-5, len(orth.parametrizations["weight"]))
target = torch.tensor([[0., 1., 0.], [-1., 0., 0.], [0., 0., 1.]])
opt = torch.optim.Adam(orth.parameters(), lr=0.05)
for i in range(20):
    opt.zero_grad()
    with parametrize.cached():
        loss = (orth.weight - target).pow(2).sum() + orth(torch.eye(3)).sum() * 0.01
    loss.backward()
    opt.step()
print(loss.item())
scale = nn.Module()
scale.value = nn.Parameter(torch.tensor([0.5, 2.0]))
parametrize.register_parametrization(scale, "value", Positive())
print(scale.value, scale.parametrizations.value.original)
parametrize.remove_parametrizations(scale, "value", leave_parametrized=True)
print(isinstance(scale.value, nn.Parameter), parametrize.is_parametrized(scale))
wn = parametrizations.weight_norm(nn.Linear(4, 2), name="weight", dim=0)
print(sorted(n for n, _ in wn.named_parameters()))
wn(torch.ones(2, 4)).sum().backward()
print(wn.parametrizations.weight.original0.grad.shape)
ortho = parametrizations.orthogonal(nn.Linear(4, 2))
print(torch.allclose(ortho.weight @ ortho.weight.T, torch.eye(2), atol=1e-5))
sn = parametrizations.spectral_norm(nn.Linear(4, 4), n_power_iterations=20)
print(torch.linalg.matrix_norm(sn.weight, 2) < 1.05)
old = torch.nn.utils.weight_norm(nn.Conv1d(2, 3, 3))
print(sorted(dict(old.named_parameters())), torch.nn.utils.remove_weight_norm(old))
