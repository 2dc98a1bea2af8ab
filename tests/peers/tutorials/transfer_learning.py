"""The last layer of a trained network is replaced; all of it, or that layer only, is trained."""
import copy
import os
import time
from tempfile import TemporaryDirectory

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset
from torchvision import models

torch.backends.cudnn.benchmark = True
images = torch.arange(12 * 3 * 80 * 80).mul(0.37).sin().view(12, 3, 80, 80)
datasets = {"train": TensorDataset(images[:8], torch.arange(8) % 2), "val": TensorDataset(images[8:], torch.arange(4) % 2)}
dataloaders = {x: DataLoader(datasets[x], batch_size=4, shuffle=True, num_workers=0) for x in ["train", "val"]}
dataset_sizes = {x: len(datasets[x]) for x in ["train", "val"]}
device = torch.device("cpu")


class Tail(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.features = nn.Sequential(*list(net.children())[:-1])
        self.fc = net.fc

    def forward(self, x):
        return self.fc(torch.flatten(self.features(x), 1))


def train_model(model, criterion, optimizer, scheduler, num_epochs=2):
    since = time.time()
    with TemporaryDirectory() as tempdir:
        path = os.path.join(tempdir, "best_model_params.pt")
        torch.save(model.state_dict(), path)
        best_acc = 0.0
        for epoch in range(num_epochs):
            for phase in ["train", "val"]:
                model.train() if phase == "train" else model.eval()
                running_loss, running_corrects = 0.0, 0
                for inputs, labels in dataloaders[phase]:
                    inputs, labels = inputs.to(device), labels.to(device)
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        outputs = model(inputs)
                        _, preds = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    running_loss += loss.item() * inputs.size(0)
                    running_corrects += torch.sum(preds == labels.data)
                if phase == "train":
                    scheduler.step()
                epoch_loss = running_loss / dataset_sizes[phase]
                epoch_acc = running_corrects.double() / dataset_sizes[phase]
                print(f"{phase} Loss: {epoch_loss:.3f} lr {scheduler.get_last_lr()}")
                if phase == "val" and epoch_acc > best_acc:
                    best_acc = epoch_acc
                    torch.save(model.state_dict(), path)
        assert time.time() > since
        model.load_state_dict(torch.load(path, weights_only=True))
    return model


model_ft = Tail(models.resnet18(weights=None))
model_ft.fc = nn.Linear(model_ft.fc.in_features, 2)
optimizer_ft = optim.SGD(model_ft.parameters(), lr=2e-6, momentum=0.9)
model_ft = train_model(model_ft, nn.CrossEntropyLoss(), optimizer_ft, lr_scheduler.StepLR(optimizer_ft, 1, gamma=0.1))
model_conv = copy.deepcopy(model_ft)
for param in model_conv.parameters():
    param.requires_grad = False
model_conv.fc = nn.Linear(model_conv.fc.in_features, 2)
optimizer_conv = optim.SGD(model_conv.fc.parameters(), lr=0.001, momentum=0.9)
train_model(model_conv, nn.CrossEntropyLoss(), optimizer_conv, lr_scheduler.StepLR(optimizer_conv, 7), 1)
print(sum(p.numel() for p in model_conv.parameters() if p.requires_grad), model_conv.features[0].weight.grad)
