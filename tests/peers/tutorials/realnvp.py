"""A normalizing flow of coupling layers, fitted to two moons by maximum likelihood."""
import numpy as np
import torch
from torch import distributions, nn


class RealNVP(nn.Module):
    def __init__(self, nets, nett, mask, prior):
        super(RealNVP, self).__init__()
        self.prior = prior
        self.mask = nn.Parameter(mask, requires_grad=False)
        self.t = torch.nn.ModuleList([nett() for _ in range(len(mask))])
        self.s = torch.nn.ModuleList([nets() for _ in range(len(mask))])

    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x * self.mask[i]
            s = self.s[i](x_) * (1 - self.mask[i])
            t = self.t[i](x_) * (1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp


nets = lambda: nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2), nn.Tanh())
nett = lambda: nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2))
masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
flow = RealNVP(nets, nett, masks, prior)
flow(torch.zeros(1, 2)) if hasattr(flow, "nothing") else None
optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad == True], lr=1e-2)
angle = np.linspace(0, np.pi, 40)
moons = np.concatenate([np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1)])
for t in range(15):
    loss = -flow.log_prob(torch.from_numpy(moons.astype(np.float32))).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if t % 5 == 0:
        print("iter %s:" % t, "loss = %.3f" % loss)
z = flow.f(torch.tensor([[0.5, 0.25]]))[0]
print(torch.allclose(flow.g(z), torch.tensor([[0.5, 0.25]]), atol=1e-5), flow.mask.requires_grad)
q = distributions.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
print(distributions.kl_divergence(q, distributions.Normal(0.0, 1.0)), q.entropy(), q.cdf(torch.tensor(0.3)), q)
mix = distributions.MixtureSameFamily(distributions.Categorical(torch.tensor([0.3, 0.7])), q)
print(mix.log_prob(torch.tensor(0.5)), mix.mean, distributions.Independent(q, 1).log_prob(torch.zeros(2)))
sig = distributions.TransformedDistribution(q, [distributions.SigmoidTransform(), distributions.AffineTransform(1.0, 2.0)])
print(sig.log_prob(torch.tensor(1.7)), distributions.Bernoulli(logits=torch.tensor(0.2)).probs, sig.sample().shape)
