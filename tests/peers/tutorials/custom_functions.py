"""Functions with derivatives of their own, in the ways that the documentation gives."""
import numpy as np
import torch
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable
from torch import nn


class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class MulConstant(Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.set_materialize_grads(False)
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output is None:
            return None, None
        return grad_output * ctx.constant, None


class Linear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.input_features, self.output_features = input_features, output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            self.register_parameter("bias", None)
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features={}, output_features={}, bias={}".format(
            self.input_features, self.output_features, self.bias is not None)


class NumpyExp(Function):
    @staticmethod
    def forward(ctx, x):
        result = torch.as_tensor(np.exp(x.detach().cpu().numpy()))
        ctx.save_for_backward(result)
        ctx.mark_non_differentiable(torch.ones(1))
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        result, = ctx.saved_tensors
        return grad * result


input = (torch.randn(20, 20, dtype=torch.double, requires_grad=True), torch.randn(30, 20, dtype=torch.double,
                                                                                  requires_grad=True), None)
print(gradcheck(LinearFunction.apply, input, eps=1e-6, atol=1e-4))
print(torch.autograd.gradgradcheck(MulConstant.apply, (torch.randn(3, dtype=torch.float64, requires_grad=True), 2.5)))
model = nn.Sequential(Linear(6, 8), nn.ReLU(), Linear(8, 2, bias=False))
print(model)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.linspace(-1, 1, 60).reshape(10, 6)
for i in range(5):
    loss = (NumpyExp.apply(MulConstant.apply(model(x), 0.5)) - x[:, :2]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
