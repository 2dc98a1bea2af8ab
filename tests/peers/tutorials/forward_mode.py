"""Forward-mode derivatives with dual tensors."""
import torch
import torch.autograd.forward_ad as fwAD

primal = torch.randn(4, 4)
tangent = torch.randn(4, 4)


def fn(x, y):
    return x ** 2 + y ** 2


with fwAD.dual_level():
    dual_input = fwAD.make_dual(primal, tangent)
    assert fwAD.unpack_dual(dual_input).tangent is tangent
    plain_tensor = torch.ones(4, 4)
    dual_output = fn(dual_input, plain_tensor)
    jvp = fwAD.unpack_dual(dual_output).tangent
    print(jvp)
assert fwAD.unpack_dual(dual_output).tangent is None
with fwAD.dual_level():
    p, t = fwAD.unpack_dual(torch.sin(fwAD.make_dual(primal[0], tangent[0])).cumsum(0))
    print(p, t)
model = torch.nn.Linear(4, 2)
model(primal)
tangents = {name: torch.ones_like(p) for name, p in model.named_parameters()}
params = dict(model.named_parameters())
with fwAD.dual_level():
    for name, p in params.items():
        delattr(model, name)
        setattr(model, name, fwAD.make_dual(p, tangents[name]))
    out = model(primal)
    print(fwAD.unpack_dual(out).tangent)
