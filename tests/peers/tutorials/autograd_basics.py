"""Gradients, as the tutorials of autograd show them."""
import torch

a = torch.tensor([2., 3.], requires_grad=True)
b = torch.tensor([6., 4.], requires_grad=True)
Q = 3 * a ** 3 - b ** 2
external_grad = torch.tensor([1., 1.])
Q.backward(gradient=external_grad)
print(9 * a ** 2 == a.grad)
print(-2 * b == b.grad)
print(a.grad, b.grad, Q)

x = torch.ones(5)
y = torch.zeros(3)
w = torch.arange(15.).reshape(5, 3).div(10).requires_grad_()
bias = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
z = torch.matmul(x, w) + bias
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
print(f"Gradient function for z: {z.grad_fn is not None}", z.requires_grad, z.is_leaf, w.is_leaf)
loss.backward()
print(w.grad)
print(bias.grad)
with torch.no_grad():
    z = torch.matmul(x, w) + bias
print(z.requires_grad, z.detach().requires_grad)

inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nSecond call\n{inp.grad}")
inp.grad.zero_()
out.backward(torch.ones_like(out))
print(f"\nCall after zeroing gradients\n{inp.grad}")
try:
    out.backward(torch.ones_like(out))
except RuntimeError as e:
    print("RuntimeError")

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
y.retain_grad()
handle = y.register_hook(lambda g: g * 2)
s = y.sum()
s.backward()
print(x.grad, y.grad)
handle.remove()
x.grad = None
g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
gg, = torch.autograd.grad(g.sum(), x)
print(g, gg)

torch.manual_seed(6)
x = torch.randn(4, 4, requires_grad=True)
y = torch.randn(4, 4, requires_grad=True)
z = x * y
l = z.sum()
print(z.grad_fn is not None, x.grad_fn, l.grad_fn.next_functions[0][0] is z.grad_fn)
try:
    x.add_(1)
except RuntimeError as e:
    print("a leaf that requires a gradient")
u = torch.rand(3, requires_grad=True)
with torch.enable_grad():
    v = u.clone()
v[0] = 0
v[1:] *= 3
v.sum().backward()
print(u.grad)
print(torch.autograd.functional.jacobian(lambda t: t.exp().cumsum(0), torch.zeros(3)))
