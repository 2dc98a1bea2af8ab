"""Error codes of define-by-run differentiation: recorded operations, `backward`, hooks."""

TEXT = r'''
MLC0430 A tensor from which backward starts, or by which it differentiates, does not require a gradient.
Eager operations are recorded where an operand requires a gradient, and only outside of no_grad.
example python:
    import mlc
    x = mlc.ones(3)
    (x * x).sum().backward()
fix: call x.requires_grad_() before x is used, or make it with requires_grad=True.

MLC0431 backward goes a second time through operations whose operands have been dropped.
example python:
    import mlc
    x = mlc.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()
fix: call the first backward with retain_graph=True, or compute the loss anew.

MLC0432 A tensor of several elements is differentiated without its cotangent, or with one of another shape.
example python:
    import mlc
    x = mlc.ones(3, requires_grad=True)
    (x * x).backward()
fix: sum or average the tensor, or pass a cotangent of its shape, as in y.backward(mlc.ones_like(y)).

MLC0433 A tensor of integers or bools is to require a gradient.
example python:
    import mlc
    mlc.arange(3).requires_grad_()
fix: convert it to floats first, as in x.to(mlc.float32).

MLC0434 What only leaves can do is asked of the result of a recorded operation.
A leaf is a tensor that no recorded operation computed. A result always requires a gradient, and has a history that a
copy would not have.
example python:
    import mlc
    x = mlc.ones(3, requires_grad=True)
    (x * 2).requires_grad_(False)
fix: use x.detach(), which is the tensor without its history.

MLC0435 A gradient or a cotangent is no tensor, or not like the tensor that it belongs to.
example python:
    import mlc
    x = mlc.ones(3, requires_grad=True)
    x.grad = mlc.ones(4)
fix: give it the shape, the dtype and the device of its tensor.

MLC0436 A hook returned what cannot take the place of the gradient that it was given.
example python:
    import mlc
    x = mlc.ones(3, requires_grad=True)
    x.register_hook(lambda gradient: gradient.sum())
    (x * x).sum().backward()
fix: return a tensor of the same shape and dtype, or None to leave the gradient as it is.

MLC0437 Tensors are differentiated by one that they do not depend on.
example python:
    import mlc
    x, y = mlc.ones(3, requires_grad=True), mlc.ones(3, requires_grad=True)
    mlc.autograd.grad((x * x).sum(), [x, y])
fix: leave it out, or pass allow_unused=True to get None for it.

MLC0438 backward reaches the call of a compiled function that was not recorded.
A call is not recorded if the function takes derivatives itself, if arguments were donated, or if it reaches a tensor
that requires a gradient by itself, without being given it.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    f = mlc.compile(lambda x: (w * x).sum())
    f(mlc.ones(3)).backward()
fix: pass such tensors, or the module that holds them, as arguments.

MLC0439 A leaf is changed in place while operations on it are recorded, or by a result of another shape.
What was recorded needs the elements that the leaf had.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    w -= 0.1
fix: update it within mlc.no_grad, or write w = w - 0.1, which makes another tensor.
'''
