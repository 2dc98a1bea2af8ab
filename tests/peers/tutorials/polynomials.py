"""A polynomial fitted to a sine: by hand, with autograd, with a Function, with nn, and with a module that changes."""
import math
import random

import torch

x = torch.linspace(-math.pi, math.pi, 200, dtype=torch.float)
y = torch.sin(x)

a, b, c, d = torch.tensor(0.1), torch.tensor(-0.2), torch.tensor(0.3), torch.tensor(0.05)
for t in range(200):
    y_pred = a + b * x + c * x ** 2 + d * x ** 3
    loss = (y_pred - y).pow(2).sum().item()
    if t % 50 == 49:
        print(t, loss)
    grad_y_pred = 2.0 * (y_pred - y)
    a -= 1e-5 * grad_y_pred.sum()
    b -= 1e-5 * (grad_y_pred * x).sum()
    c -= 1e-5 * (grad_y_pred * x ** 2).sum()
    d -= 1e-5 * (grad_y_pred * x ** 3).sum()
print(f"Result: y = {a.item()} + {b.item()} x + {c.item()} x^2 + {d.item()} x^3")


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input ** 3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input ** 2 - 1)


a, b, c, d = (torch.full((), v, dtype=torch.float, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
for t in range(100):
    P3 = LegendrePolynomial3.apply
    loss = (a + b * P3(c + d * x) - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
print(loss, a, d.detach())

xx = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for t in range(100):
    loss = loss_fn(model(xx), y)
    if t % 25 == 24:
        print(t, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"y = {model[0].bias.item():.4f} + {model[0].weight[:, 0].item():.4f} x + {model[0].weight[:, 1].item():.4f} x^2")


class DynamicNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (torch.nn.Parameter(torch.randn(())) for _ in range(3))
        self.e = torch.nn.Parameter(torch.randn(()) * 0.01)

    def forward(self, x):
        y = self.a + self.b * x + self.c * x ** 2
        for exp in range(4, random.randint(4, 6)):
            y = y + self.e * x ** exp
        return y


random.seed(1)
model = DynamicNet()
criterion = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)
for t in range(60):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
