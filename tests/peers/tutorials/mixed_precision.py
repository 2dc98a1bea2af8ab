"""Training with autocast, a scaler, accumulated gradients and a checkpoint, as in the recipes."""
import torch
from torch import nn

batch_size, in_size, out_size, num_layers, num_batches, epochs = 16, 32, 16, 3, 6, 2


def make_model(in_size, out_size, num_layers):
    layers = []
    for _ in range(num_layers - 1):
        layers.append(torch.nn.Linear(in_size, in_size))
        layers.append(torch.nn.ReLU())
    layers.append(torch.nn.Linear(in_size, out_size))
    return torch.nn.Sequential(*tuple(layers))


data = [torch.linspace(-1, 1, batch_size * in_size).view(batch_size, in_size).sin().roll(i) for i in range(num_batches)]
targets = [x[:, :out_size].abs() for x in data]
loss_fn = torch.nn.MSELoss()
device, use_amp = "cpu", True
net = make_model(in_size, out_size, num_layers)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler(device, enabled=use_amp)
for epoch in range(epochs):
    for input, target in zip(data, targets):
        with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
            output = net(input)
            assert output.dtype is torch.bfloat16
            loss = loss_fn(output, target)
            assert loss.dtype is torch.float32
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.1)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
    print(f"{epoch} {loss.item():.1f} {scaler.get_scale()}")
checkpoint = {"model": net.state_dict(), "optimizer": opt.state_dict(), "scaler": scaler.state_dict()}
torch.save(checkpoint, "filename")
loaded = torch.load("filename", weights_only=True)
net.load_state_dict(loaded["model"])
opt.load_state_dict(loaded["optimizer"])
scaler.load_state_dict(loaded["scaler"])
print(sorted(checkpoint["scaler"]))

accumulation = 3
for i, (input, target) in enumerate(zip(data, targets)):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_fn(net(input), target) / accumulation
    loss.backward()
    if (i + 1) % accumulation == 0:
        opt.step()
        opt.zero_grad()
print(round(loss.item(), 1))


@torch.autocast("cpu", dtype=torch.bfloat16)
def evaluate(model, x):
    y = model(x)
    with torch.autocast("cpu", enabled=False):
        z = y.float() @ torch.eye(out_size)
    return y.dtype, z.dtype, torch.is_autocast_enabled("cpu"), torch.softmax(y, -1).dtype, (y @ y.t()).dtype


print(evaluate(net, data[0]), torch.is_autocast_enabled("cpu"))
half = make_model(8, 4, 2).to(torch.bfloat16)
print(next(half.parameters()).dtype, half(torch.ones(2, 8, dtype=torch.bfloat16)).dtype, torch.get_default_dtype())
