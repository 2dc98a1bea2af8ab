"""Jacobians, Hessians and products with them."""
from functools import partial

import torch
import torch.nn.functional as F
from torch.func import functional_call, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

D = 6
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Softplus(), torch.nn.Linear(4, 1))
points = torch.linspace(-1, 1, 12).view(4, 3)
model(points)


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


weight, bias, x = torch.randn(D, D), torch.randn(D), torch.randn(D)
xp = x.clone().requires_grad_()
unit_vectors = torch.eye(D)


def compute_jac(xp):
    jacobian_rows = [torch.autograd.grad(predict(weight, bias, xp), xp, vec)[0] for vec in unit_vectors]
    return torch.stack(jacobian_rows)


jacobian = compute_jac(xp)
print(jacobian.shape)
print(jacobian[0])
_, vjp_fn = vjp(partial(predict, weight, bias), x)
ft_jacobian, = vmap(vjp_fn)(unit_vectors)
assert torch.allclose(ft_jacobian, jacobian)
assert torch.allclose(jacrev(predict, argnums=2)(weight, bias, x), jacobian)
assert torch.allclose(jacfwd(predict, argnums=2)(weight, bias, x), jacobian)
hess_api = hessian(predict, argnums=2)(weight, bias, x)
hess_fwdrev = jacfwd(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)
print(hess_api.shape, torch.allclose(hess_api, hess_fwdrev, atol=1e-6), hess_api[0, 0])
batch = torch.randn(5, D)
batch_jac = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)
print(batch_jac.shape, batch_jac.diagonal(dim1=1, dim2=2).sum(-1))
y, tangent = jvp(lambda w, b: predict(w, b, x), (weight, bias), (torch.ones_like(weight), torch.zeros_like(bias)))
print(y, tangent)


def hvp(f, primals, tangents):
    return jvp(torch.func.grad(f), primals, tangents)[1]


print(hvp(lambda v: (v.sin() ** 2).sum(), (x,), (torch.ones(D),)))
out, f_jvp = linearize(lambda v: v.cumprod(0), x)
print(f_jvp(torch.ones(D)))
jac_tuple = torch.autograd.functional.jacobian(predict, (weight, bias, x))
print([j.shape for j in jac_tuple])
print(torch.autograd.functional.hessian(lambda a: (a ** 3).sum(), torch.tensor([1.0, 2.0])))
print(torch.autograd.functional.vhp(lambda a: (a ** 3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0])))
print(torch.autograd.functional.jvp(torch.exp, torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]), create_graph=True))
laplacian = vmap(lambda p: torch.trace(hessian(lambda q: model(q).squeeze())(p)))(points)
print(laplacian)
params = dict(model.named_parameters())
ntk = jacrev(lambda p: functional_call(model, p, (points,)))(params)
flat = torch.cat([j.detach().flatten(2) for j in ntk.values()], dim=2).squeeze(1)
print(flat @ flat.T)
