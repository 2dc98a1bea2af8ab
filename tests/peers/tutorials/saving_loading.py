"""Models, optimizers and checkpoints in files."""
import io
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class TheModelClass(nn.Module):
    def __init__(self):
        super(TheModelClass, self).__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(6 * 6 * 6, 10)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        self.seen += x.size(0)
        return self.fc1(self.pool(F.relu(self.conv1(x))).flatten(1))


model = TheModelClass()
optimizer = optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
x = torch.arange(2 * 3 * 16 * 16, dtype=torch.float32).reshape(2, 3, 16, 16) / 1536
for epoch in range(2):
    loss = model(x).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("Model's state_dict:")
for param_tensor in model.state_dict():
    print(param_tensor, "\t", model.state_dict()[param_tensor].size())
for var_name in optimizer.state_dict():
    print(var_name)
print(optimizer.state_dict()["param_groups"][0]["momentum"], len(optimizer.state_dict()["state"]))
PATH = "checkpoint.tar"
torch.save({"epoch": epoch, "model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict(),
            "loss": loss}, PATH)
other = TheModelClass()
other_optimizer = optim.SGD(other.parameters(), lr=0.1)
checkpoint = torch.load(PATH, weights_only=True)
print(other.load_state_dict(checkpoint["model_state_dict"]))
other_optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
print(checkpoint["epoch"], checkpoint["loss"].item(), other_optimizer.param_groups[0]["lr"], int(other.seen))
other.eval()
with torch.no_grad():
    assert torch.equal(other(x), model(x))
torch.save(model, "model.pth")
whole = torch.load("model.pth", weights_only=False)
whole.eval()
print(type(whole).__name__, torch.equal(whole.fc1.weight, model.fc1.weight))
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
buffer.seek(0)
state = torch.load(buffer, map_location=torch.device("cpu"))
del state["fc1.bias"]
state["extra"] = torch.ones(1)
print(model.load_state_dict(state, strict=False))
try:
    model.load_state_dict(state)
except RuntimeError as error:
    print("Missing key(s)" in str(error), "Unexpected key(s)" in str(error))
warm = {k: v for k, v in state.items() if k.startswith("conv1")}
new = nn.ModuleDict({"a": TheModelClass(), "b": nn.Linear(2, 2)})
missing, unexpected = new.a.load_state_dict(warm, strict=False)
print(missing, unexpected)
torch.save({"a": new.a.state_dict(), "optimizer": other_optimizer.state_dict()}, "both.tar")
print(sorted(torch.load("both.tar")), os.path.exists("both.tar"))
prefixed = {"module." + k: v for k, v in model.state_dict().items()}
torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(prefixed, "module.")
print(list(prefixed) == list(model.state_dict()))
