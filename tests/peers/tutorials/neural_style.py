"""An image is optimized, by LBFGS, to have the content of one and the style of another."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torchvision.models import vgg16


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = mean.clone().view(-1, 1, 1), std.clone().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


cnn = vgg16().features.eval()
cnn(torch.zeros(1, 3, 32, 32))
grid = torch.linspace(0, 1, 24)
content_img = (grid[:, None] * grid[None, :]).expand(1, 3, 24, 24).contiguous()
style_img = torch.sin(20 * content_img) * 0.5 + 0.5
normalization = Normalization(torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225]))
content_losses, style_losses = [], []
model, i = nn.Sequential(normalization), 0
for layer in cnn.children():
    if isinstance(layer, nn.Conv2d):
        i += 1
        name = "conv_{}".format(i)
    elif isinstance(layer, nn.ReLU):
        name = "relu_{}".format(i)
        layer = nn.ReLU(inplace=False)
    elif isinstance(layer, nn.MaxPool2d):
        name = "pool_{}".format(i)
    else:
        raise RuntimeError("Unrecognized layer: {}".format(layer.__class__.__name__))
    model.add_module(name, layer)
    if name == "conv_4":
        content_losses.append(ContentLoss(model(content_img).detach()))
        model.add_module("content_loss_{}".format(i), content_losses[-1])
    if name in ("conv_1", "conv_2", "conv_3"):
        style_losses.append(StyleLoss(model(style_img).detach()))
        model.add_module("style_loss_{}".format(i), style_losses[-1])
for i in range(len(model) - 1, -1, -1):
    if isinstance(model[i], ContentLoss) or isinstance(model[i], StyleLoss):
        break
model = model[:(i + 1)]
input_img = content_img.clone().requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer, run = optim.LBFGS([input_img], max_iter=4), [0]
while run[0] <= 3:
    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = sum(sl.loss for sl in style_losses) * 1e6
        content_score = sum(cl.loss for cl in content_losses)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        return style_score + content_score

    optimizer.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
print(list(dict(model.named_children())), input_img.shape)
