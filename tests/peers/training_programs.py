"""Twelve models and their training steps, written for PyTorch; `models.py` loads this file for mlc as well, with its
imports changed.

A function of `PROGRAMS` makes a model from a numpy generator. It returns the modules whose parameters are the state,
the training step, and the batches: the arguments of the step, one tuple for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def batches(rng, count, *shapes):
    """Four batches of random numbers, again and again, so that there is something to learn.

    A shape that ends with a range is one of integers below its end.
    """
    made = [tuple(torch.from_numpy(
        rng.integers(0, shape[-1].stop, shape[:-1]) if isinstance(shape[-1], range)
        else rng.standard_normal(shape).astype(np.float32)) for shape in shapes) for _ in range(4)]
    for i in range(count):
        yield made[i % 4]


def mlp(rng, steps):
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    criterion = nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return [model], step, batches(rng, steps, (32, 20), (32, range(5)))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.norm = nn.BatchNorm2d(16)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.norm(self.conv2(x))), 2)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def cnn(rng, steps):
    model = ConvNet()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.7)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    return [model], step, batches(rng, steps, (16, 1, 14, 14), (16, range(10)))


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        planes, layers = width, []
        for i in range(4):
            layers.append(nn.Sequential(BasicBlock(planes, width * 2**i, 1 if i == 0 else 2),
                                        BasicBlock(width * 2**i, width * 2**i)))
            planes = width * 2**i
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(planes, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def resnet18(rng, steps):
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[20, 40], gamma=0.1)

    def step(images, target):
        output = model(images)
        loss = F.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss, (output.argmax(dim=1) == target).float().mean()

    return [model], step, batches(rng, steps, (8, 3, 48, 48), (8, range(10)))


class CharLSTM(nn.Module):
    def __init__(self, vocab=20, size=32, layers=2):
        super().__init__()
        self.encoder = nn.Embedding(vocab, size)
        self.rnn = nn.LSTM(size, size, layers)
        self.decoder = nn.Linear(size, vocab)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out), hidden


def lstm(rng, steps):
    model = CharLSTM()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    hidden = [torch.zeros(2, 4, 32), torch.zeros(2, 4, 32)]

    def step(text, target):
        model.zero_grad()
        output, (h, c) = model(text, (hidden[0], hidden[1]))
        loss = criterion(output.view(-1, 20), target.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        hidden[0].copy_(h.detach())
        hidden[1].copy_(c.detach())
        return loss

    return [model], step, batches(rng, steps, (12, 4, range(20)), (12, 4, range(20)))


class SequenceClassifier(nn.Module):
    def __init__(self, inputs=6, size=24, classes=3):
        super().__init__()
        self.gru = nn.GRU(inputs, size, batch_first=True, bidirectional=True)
        self.attend = nn.Linear(2 * size, 1)
        self.head = nn.Linear(2 * size, classes)

    def forward(self, x):
        out, _ = self.gru(x)
        weights = self.attend(out).softmax(dim=1)
        return self.head((weights * out).sum(dim=1))


def gru(rng, steps):
    model = SequenceClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 2.0, 0.5]))
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()
        scheduler.step()
        return loss

    return [model], step, batches(rng, steps, (8, 15, 6), (8, range(3)))


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.heads = heads
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (z.view(B, T, self.heads, C // self.heads).transpose(1, 2) for z in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, block)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocab=30, block=16, width=32, heads=4, layers=3):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(vocab, width), wpe=nn.Embedding(block, width),
            h=nn.ModuleList([Block(width, heads, block) for _ in range(layers)]), ln_f=nn.LayerNorm(width)))
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def gpt(rng, steps):
    model = GPT()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.95))

    def rate(i):
        return (i + 1) / 10 if i < 10 else 0.1 + 0.45 * (1 + math.cos(math.pi * (i - 10) / 40))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

    def step(x, y):
        logits, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        return loss, norm

    return [model], step, batches(rng, steps, (8, 16, range(30)), (8, 16, range(30)))


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, width=32, layers=2, heads=4, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.position
        return self.head(self.encoder(x)[:, 0])


def vit(rng, steps):
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps + 1)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    return [model], step, batches(rng, steps, (8, 3, 16, 16), (8, range(10)))


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layers = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, t):
        half = self.width // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        angles = t[:, None].float() * rates[None]
        return self.layers(torch.cat([angles.sin(), angles.cos()], dim=-1))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(width, outputs)
        self.second = nn.Sequential(nn.GroupNorm(4, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.first(x) + self.time(t)[:, :, None, None]
        return self.second(h) + self.shortcut(x)


class UNet(nn.Module):
    def __init__(self, width=8, time=16):
        super().__init__()
        self.time = TimeEmbedding(time)
        self.begin = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.ModuleList([ResidualBlock(width, width, time), ResidualBlock(width, 2 * width, time)])
        self.pool = nn.AvgPool2d(2)
        self.middle = ResidualBlock(2 * width, 2 * width, time)
        self.up = nn.ModuleList([ResidualBlock(4 * width, width, time), ResidualBlock(2 * width, width, time)])
        self.grow = nn.ConvTranspose2d(2 * width, 2 * width, 2, stride=2)
        self.end = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t)
        x, kept = self.begin(x), []
        for block in self.down:
            x = block(x, t)
            kept.append(x)
            x = self.pool(x)
        x = self.middle(x, t)
        x = self.up[0](torch.cat([self.grow(x), kept.pop()], dim=1), t)
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.end(self.up[1](torch.cat([x, kept.pop()], dim=1), t))


def diffusion(rng, steps):
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), dim=0)
    average = [p.detach().clone() for p in model.parameters()]

    def step(x, noise, t):
        a = alphas[t].view(-1, 1, 1, 1)
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = F.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, p in zip(average, model.parameters()):
                kept.mul_(0.99).add_(p, alpha=0.01)
        return loss

    return [model], step, batches(rng, steps, (4, 1, 16, 16), (4, 1, 16, 16), (4, range(100)))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc21, self.fc22 = nn.Linear(32, 4), nn.Linear(32, 4)
        self.fc3, self.fc4 = nn.Linear(4, 32), nn.Linear(32, 64)

    def forward(self, x, eps):
        h = F.relu(self.fc1(x.view(-1, 64)))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + eps * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


def vae(rng, steps):
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x, eps):
        x = torch.sigmoid(x)
        optimizer.zero_grad()
        recon, mu, logvar = model(x, eps)
        bce = F.binary_cross_entropy(recon, x.view(-1, 64), reduction="sum")
        loss = bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        optimizer.step()
        return loss

    return [model], step, batches(rng, steps, (16, 1, 8, 8), (16, 4))


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, features=12, hidden=16, classes=4):
        super().__init__()
        self.gc1, self.gc2 = GraphConv(features, hidden), GraphConv(hidden, classes)

    def forward(self, x, adjacency):
        return F.log_softmax(self.gc2(F.relu(self.gc1(x, adjacency)), adjacency), dim=1)


def gcn(rng, steps):
    nodes = 60
    edges = np.unique(np.concatenate([rng.integers(0, nodes, (2, 150)), np.stack([np.arange(nodes)] * 2)], 1), axis=1)
    degree = np.bincount(edges[0], minlength=nodes).astype(np.float32)
    values = 1 / np.sqrt(degree[edges[0]] * degree[edges[1]])
    adjacency = torch.sparse_coo_tensor(torch.from_numpy(edges), torch.from_numpy(values), (nodes, nodes))
    labels, train = torch.from_numpy(rng.integers(0, 4, nodes)), torch.arange(0, 40)
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def step(x):
        model.train()
        optimizer.zero_grad()
        output = model(x, adjacency)
        loss = F.nll_loss(output[train], labels[train])
        accuracy = (output[train].argmax(1) == labels[train]).sum() / len(train)
        loss.backward()
        optimizer.step()
        return loss, accuracy

    return [model], step, batches(rng, steps, (nodes, 12))


class Corridor:
    """An environment: walk to the right end of a corridor, against a wind."""

    def __init__(self, rng, length=6):
        self.rng, self.length = rng, length

    def reset(self):
        self.place, self.time = 0, 0
        return self.observation()

    def observation(self):
        seen = np.zeros(self.length + 1, np.float32)
        seen[self.place], seen[-1] = 1.0, self.time / 20
        return seen

    def step(self, action):
        move = (1 if action == 1 else -1) if self.rng.random() < 0.9 else 0
        self.place, self.time = min(max(self.place + move, 0), self.length - 1), self.time + 1
        done = self.place == self.length - 1
        return self.observation(), 1.0 if done else -0.05, done or self.time >= 20


def reinforce(rng, steps):
    policy = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    environment = Corridor(rng)

    def step(states, actions, returns):
        log_probs = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(log_probs * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def episodes():
        for _ in range(steps):
            state, done, states, actions, rewards = environment.reset(), False, [], [], []
            while not done:
                with torch.no_grad():
                    probability = F.softmax(policy(torch.from_numpy(state).unsqueeze(0)), dim=1)[0, 1].item()
                action = int(rng.random() < probability)
                states.append(state)
                actions.append(action)
                state, reward, done = environment.step(action)
                rewards.append(reward)
            returns, total = [], 0.0
            for r in rewards[::-1]:
                total = r + 0.99 * total
                returns.insert(0, total)
            yield torch.tensor(np.array(states)), torch.tensor(actions), torch.tensor(returns)

    return [policy], step, episodes()


class BertLayer(nn.Module):
    def __init__(self, vocab=40, width=32, heads=4):
        super().__init__()
        self.words = nn.Embedding(vocab, width, padding_idx=0)
        self.positions = nn.Embedding(16, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dense = nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.heads = heads
        self.decoder = nn.Linear(width, vocab, bias=False)
        self.decoder.weight = self.words.weight
        self.bias = nn.Parameter(torch.zeros(vocab))

    def split(self, x):
        return x.view(*x.size()[:-1], self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, ids):
        mask = (1.0 - (ids != 0).unsqueeze(1).unsqueeze(2).float()) * -10000.0
        x = self.norm(self.words(ids) + self.positions.weight[:ids.size(1)])
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + mask
        context = torch.matmul(nn.Softmax(dim=-1)(scores), v).permute(0, 2, 1, 3).contiguous()
        x = self.norm1(x + self.dense(context.view(*context.size()[:-2], -1)))
        x = self.norm2(x + self.outer(F.gelu(self.inner(x))))
        return self.decoder(x) + self.bias


def bert(rng, steps):
    model = BertLayer()
    decay = [p for n, p in model.named_parameters() if not any(k in n for k in ("bias", "norm"))]
    rest = [p for n, p in model.named_parameters() if any(k in n for k in ("bias", "norm"))]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}],
                                  lr=5e-4, eps=1e-6)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[10])

    def step(ids, labels):
        labels = torch.where(labels < 20, -100, labels)
        loss = F.cross_entropy(model(ids).transpose(1, 2), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        return loss

    return [model], step, batches(rng, steps, (4, 16, range(40)), (4, 16, range(40)))


PROGRAMS: dict[str, Any] = {f.__name__: f for f in (
    mlp, cnn, resnet18, lstm, gru, gpt, vit, diffusion, vae, gcn, reinforce, bert)}
