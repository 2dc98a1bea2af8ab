"""A small network learns from a large one; mixtures of experts; gradient reversal; checkpointing; and contrast."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class GradReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class MoE(nn.Module):
    def __init__(self, dim, experts=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
                                      for _ in range(experts)])

    def forward(self, x):
        scores = self.gate(x)
        weights, chosen = torch.topk(scores, self.k)
        weights = F.softmax(weights, dim=1, dtype=torch.float).type_as(x)
        results = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            batch_idx, nth_expert = torch.where(chosen == i)
            results[batch_idx] += weights[batch_idx, nth_expert, None] * expert(x[batch_idx])
        balance = F.one_hot(chosen, len(self.experts)).float().mean((0, 1)) @ scores.softmax(-1).mean(0)
        return results, balance


teacher = nn.Sequential(nn.Linear(6, 32), nn.Hardswish(), nn.Linear(32, 32), nn.Mish(), nn.Linear(32, 4)).eval()
student = nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Dropout(0.0), nn.Linear(8, 4))
x = torch.linspace(-2, 2, 60).view(10, 6).sin()
labels = torch.arange(10) % 4
T, soft_weight = 2.0, 0.25
teacher(x), student(x)
optimizer = torch.optim.NAdam(student.parameters(), lr=0.01)
for epoch in range(4):
    with torch.no_grad():
        teacher_logits = teacher(x)
    student_logits = student(x)
    soft_targets = F.softmax(teacher_logits / T, dim=-1)
    soft_prob = F.log_softmax(student_logits / T, dim=-1)
    soft_loss = torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size()[0] * (T ** 2)
    kl = nn.KLDivLoss(reduction="batchmean")(soft_prob, soft_targets) * T * T
    loss = soft_weight * soft_loss + (1 - soft_weight) * F.cross_entropy(student_logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f} {soft_loss.item():.5f} {kl.item():.5f}")
moe = MoE(6)
moe(x)
moe_opt = torch.optim.RAdam(moe.parameters(), lr=0.02)
for epoch in range(4):
    out, balance = moe(x)
    loss = F.huber_loss(out, x.roll(1, 0)) + 0.1 * balance
    moe_opt.zero_grad()
    loss.backward()
    moe_opt.step()
    print(loss.item())
z = x.clone().requires_grad_()
domain = nn.Linear(6, 2)
F.cross_entropy(domain(GradReverse.apply(z, 0.5)), labels % 2).backward()
y = x.clone().requires_grad_()
F.cross_entropy(domain(y), labels % 2).backward()
print(torch.allclose(z.grad, -0.5 * y.grad), z.grad.norm())
w = x.clone().requires_grad_()
a = checkpoint(teacher, w, use_reentrant=False).sum() + checkpoint_sequential(teacher, 2, w, use_reentrant=False).sum()
a.backward()
print(w.grad[0])
z1, z2 = F.normalize(student(x), dim=1), F.normalize(student(x.flip(1)), dim=1)
sim = torch.mm(torch.cat([z1, z2]), torch.cat([z1, z2]).t()) / 0.5
sim.masked_fill_(torch.eye(20, dtype=torch.bool), -9e15)
nt_xent = -(sim[torch.arange(20), torch.arange(20).roll(10)] - torch.logsumexp(sim, dim=-1)).mean()
triplet = nn.TripletMarginLoss(margin=1.0, p=2)(z1, z2, z1.roll(1, 0))
print(nt_xent.item(), triplet.item(), nn.CosineEmbeddingLoss()(z1, z2, torch.ones(10)).item())
