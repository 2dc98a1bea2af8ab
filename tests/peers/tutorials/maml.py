"""Learning to learn: the inner steps are differentiated."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(1, 20), nn.Linear(20, 20), nn.Linear(20, 1)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def mse(x, y):
    return torch.mean((x - y) ** 2)


def sample_tasks(count, points):
    amplitude, phase = torch.linspace(0.1, 1.0, count)[:, None, None], torch.linspace(0, 3.1, count)[:, None, None]
    xs = torch.linspace(-5, 5, points)[None, :, None] + torch.zeros(count, 1, 1)
    return xs, amplitude * torch.sin(xs + phase)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
params = dict(net.named_parameters())


def loss_for_task(x1, y1, x2, y2):
    def inner(params, x, y):
        return mse(functional_call(net, params, (x,)), y)

    grads = grad(inner)(params, x1, y1)
    new_params = {k: params[k] - 0.01 * g for k, g in grads.items()}
    return mse(functional_call(net, new_params, (x2,)), y2)


for it in range(5):
    x, y = sample_tasks(4, 10)
    x1, y1, x2, y2 = x[:, ::2], y[:, ::2], x[:, 1::2], y[:, 1::2]
    inner_losses = vmap(loss_for_task)(x1, y1, x2, y2)
    loss = sum(inner_losses) / len(inner_losses)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("[Iter %d] Loss: %.4f" % (it, loss.item()))

x, y = sample_tasks(2, 10)
for it in range(4):                       # and by hand, with create_graph
    total = 0.0
    for task in range(2):
        fast = [p for p in net.parameters()]
        for _ in range(2):
            h = F.relu(F.linear(x[task], fast[0], fast[1]))
            h = F.relu(F.linear(h, fast[2], fast[3]))
            inner_loss = mse(F.linear(h, fast[4], fast[5]), y[task])
            gradients = torch.autograd.grad(inner_loss, fast, create_graph=True)
            fast = [w - 0.001 * g for w, g in zip(fast, gradients)]
        h = F.relu(F.linear(F.relu(F.linear(x[task], *fast[:2])), *fast[2:4]))
        total = total + mse(F.linear(h, *fast[4:]), y[task])
    opt.zero_grad()
    total.backward()
    opt.step()
    print(total.item())
