"""A network that learns to turn and move its images before it classifies them."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=5)
        self.conv2 = nn.Conv2d(4, 8, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(128, 20)
        self.fc2 = nn.Linear(20, 10)
        self.localization = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=7), nn.MaxPool2d(2, stride=2), nn.ReLU(True),
            nn.Conv2d(4, 5, kernel_size=5), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(5 * 3 * 3, 16), nn.ReLU(True), nn.Linear(16, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1.03, 0.02, 0.01, -0.04, 0.97, 0.005], dtype=torch.float))

    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 5 * 3 * 3)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 128)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


model = Net().to(device)
optimizer = optim.SGD(model.parameters(), lr=0.01)
rng = np.random.RandomState(0)
images = torch.tensor(rng.rand(24, 1, 28, 28).astype("float32")).to(device)
labels = torch.tensor(rng.randint(0, 10, 24)).to(device)


def train(epoch):
    model.train()
    for batch_idx in range(3):
        data, target = images[batch_idx * 8:(batch_idx + 1) * 8], labels[batch_idx * 8:batch_idx * 8 + 8]
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(images)}]\tLoss: {loss.item():.6f}")


def test():
    with torch.no_grad():
        model.eval()
        output = model(images)
        test_loss = F.nll_loss(output, labels, reduction="sum").item() / len(images)
        pred = output.max(1, keepdim=True)[1]
        correct = pred.eq(labels.view_as(pred)).sum().item()
        print("Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)".format(test_loss, correct, 24, 100. * correct / 24))


for epoch in range(1, 4):
    train(epoch)
    test()
print(model.fc_loc[2].weight.grad.norm())
