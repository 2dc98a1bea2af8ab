"""A differential equation solved by a network whose derivatives are in the loss; and one integrated by hand."""
import numpy as np
import torch
import torch.nn as nn


class FCN(nn.Module):
    """A fully-connected network."""

    def __init__(self, N_INPUT, N_OUTPUT, N_HIDDEN, N_LAYERS):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(*[nn.Linear(N_INPUT, N_HIDDEN), activation()])
        self.fch = nn.Sequential(*[nn.Sequential(*[nn.Linear(N_HIDDEN, N_HIDDEN), activation()]) for _ in range(N_LAYERS - 1)])
        self.fce = nn.Linear(N_HIDDEN, N_OUTPUT)

    def forward(self, x):
        x = self.fcs(x)
        x = self.fch(x)
        x = self.fce(x)
        return x


torch.manual_seed(123)
pinn = FCN(1, 1, 16, 2)
t_boundary = torch.tensor(0.).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 1, 20).view(-1, 1).requires_grad_(True)
d, w0 = 2, 20
mu, k = 2 * d, w0 ** 2
mu_hat = nn.Parameter(torch.zeros(1, requires_grad=True))
optimiser = torch.optim.Adam(list(pinn.parameters()) + [mu_hat], lr=1e-3)
for i in range(12):
    optimiser.zero_grad()
    lambda1, lambda2 = 1e-1, 1e-4
    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2
    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + (mu + mu_hat) * dudt + k * u) ** 2)
    loss = loss1 + lambda1 * loss2 + lambda2 * loss3
    loss.backward()
    optimiser.step()
    if i % 4 == 0:
        print(i, loss.item(), mu_hat.item())

pinn.double()
t_physics = t_physics.detach().double()
lbfgs = torch.optim.LBFGS(pinn.parameters(), lr=0.1, history_size=10, max_iter=5, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = (pinn(t_physics) - torch.cos(3 * t_physics)).square().mean()
    loss.backward()
    return loss


print(lbfgs.step(closure).item())


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y ** 3)


func, dt = ODEFunc(), 0.1
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
y0 = torch.tensor([[2., 0.]])
true_y = torch.stack([y0 @ torch.matrix_exp(true_A * i * dt) for i in range(8)])
ode_opt = torch.optim.RMSprop(func.parameters(), lr=1e-2)
for itr in range(5):
    ode_opt.zero_grad()
    ys, y = [y0], y0
    for i in range(7):
        k1 = func(i * dt, y)
        k2 = func((i + 0.5) * dt, y + dt / 2 * k1)
        y = y + dt * k2
        ys.append(y)
    loss = torch.mean(torch.abs(torch.stack(ys) - true_y))
    loss.backward()
    ode_opt.step()
    print("Iter {:04d} | Total Loss {:.6f}".format(itr, loss.item()))
