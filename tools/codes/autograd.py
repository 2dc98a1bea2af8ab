"""Error codes of define-by-run training: recorded operations, `backward`, hooks, schedulers, clipping."""

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
A call is not recorded if the function calls backward itself, or if arguments were donated.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    f = mlc.compile(lambda w: (2 * w).sum(), donate="w")
    f(w).backward()
fix: leave out donate, or differentiate by mlc.autograd.grad in the function instead of backward.

MLC0439 A leaf is changed in place while operations on it are recorded, or by a result of another shape.
What was recorded needs the elements that the leaf had.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    w -= 0.1
fix: update it within mlc.no_grad, or write w = w - 0.1, which makes another tensor.

MLC0720 backward is called, or grad is set, where it is not recorded: in a loop or branch on tensors, within no_grad.
A compiled function may call backward itself. What it differentiates are the operations of that function, which so far
are neither those of a loop or branch nor those of a function that is called, such as the forward of a module. It is
recorded for calls outside of no_grad alone, also if it enables gradients itself.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    @mlc.compile
    def f(x):
        while x.sum() < 10:
            x = x + 1
            (w * x).sum().backward()
    f(mlc.ones(3))
fix: call it in the compiled function itself, after the loop, or use mlc.grad, which differentiates a function.

MLC0721 backward, called in a compiled function, reaches the result of an operation that was recorded outside.
Its history is not part of the compiled function.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    mlc.compile(lambda x: (x * x).sum().backward())(2 * w)
fix: pass x.detach(), or call backward outside.

MLC0722 A compiled function reads a setting of an optimizer after a scheduler may have changed it.
Schedulers set the learning rate after the call, so that the next call sees it.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    opt = mlc.optim.SGD([w], lr=0.1)
    scheduler = mlc.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    @mlc.compile
    def f(x):
        (w * x).sum().backward()
        scheduler.step()
        opt.step()
    f(mlc.ones(3))
fix: call scheduler.step() after optimizer.step().

MLC0723 The step of an optimizer or scheduler is called where it cannot be recorded.
An optimizer changes parameters in place, which a function that mlc.grad differentiates may not. A scheduler makes its
step after each call of a compiled function: not in a loop or branch on tensors.
example python:
    import mlc
    w = mlc.ones(3, requires_grad=True)
    opt = mlc.optim.SGD([w], lr=0.1)
    w.grad = mlc.ones(3)
    mlc.grad(lambda x: [opt.step(), x.sum()][1])(mlc.ones(3))
fix: call it in the compiled function itself, or use optimizer.update.

MLC0751 The elements of a tensor do not lie in memory in such an order that a view could have this shape.
A view has a distance in memory for each dimension. The elements of a transposed tensor, one after another, have none.
example python:
    import mlc
    mlc.zeros(2, 3).t().view(6)
fix: x.reshape(...), which copies the elements where it has to.

MLC0752 Several elements of a tensor are the same memory, and each would be written.
example python:
    import mlc
    mlc.zeros(3).expand(2, 3).add_(1)
fix: write to a copy, x.clone().

MLC0753 A tensor shares the memory of an array that is read-only.
example python:
    import mlc
    import numpy as np
    a = np.zeros(3)
    a.flags.writeable = False
    mlc.from_numpy(a).add_(1)
fix: write to a copy, x.clone().

MLC0754 A tensor on a device is written to that a view was made of, or that is a view.
Views on a device are copies so far, which would not see it.
example text:
    program.py:3:1: error[MLC0754]: a view on a device is a copy, and would not see what is written to the other tensor
fix: write to a clone, or do without the view.

MLC0755 `out` is not a tensor per result, is of another dtype, or would have to be recorded for backward.
example python:
    import mlc
    x = mlc.ones(3, requires_grad=True)
    mlc.add(x, 1, out=mlc.zeros(3))
fix: leave out `out`, or write within mlc.no_grad.

MLC0756 A function that is being recorded changes a tensor in place, and what that means to others would be lost.
The tensor is an argument of a function that mlc.grad or the like records, may be a copy or a view, is detached from one
whose history would not know, or is changed in a loop under a name that then stands for another tensor; or a called
function, such as the forward of a module, changes a parameter and then computes with it what is differentiated.
example python:
    import mlc
    @mlc.compile
    def f(x):
        y = z = x + 0
        while z.sum() < 10:
            z += 1
            z = z * 2
        return y, z
    f(mlc.ones(3))
fix: change a clone, or write x = x + y.

MLC0757 A view of this kind cannot be written to while a function is recorded.
example python:
    import mlc
    mlc.compile(lambda x: x.unfold(0, 2, 2).add_(1))(mlc.zeros(4))
fix: write to the tensor that it is a view of.

MLC0758 A compiled function changes an argument in place, and a gradient is to be recorded.
example python:
    import mlc
    @mlc.compile
    def f(x, w):
        x.mul_(w)
    f(mlc.ones(3), mlc.ones(3, requires_grad=True))
fix: call it within mlc.no_grad, or return the new value.

MLC0759 A compiled function changes an argument in place, and another argument shares its memory.
The function was recorded for arguments that do not.
example python:
    import mlc
    @mlc.compile
    def f(x, y):
        x.add_(1)
        return y * 2
    x = mlc.ones(3)
    f(x, x[:1])
fix: pass a clone of one of them.

MLC0760 The shape of a tensor would be changed in place that other tensors are views of, that is one, or is recorded.
example python:
    import mlc
    x = mlc.ones(2, 3)
    row = x[0]
    x.t_()
fix: write x = x.t(), which is another tensor of the same memory.

MLC0770 A view by strides reaches beyond the elements of the tensor, or the tensor's size is not known.
example python:
    import mlc
    mlc.arange(4).as_strided((3,), (2,))
fix: choose a smaller size, stride or offset.

MLC0771 Strides are given for a tensor whose elements do not lie in memory in row-major order.
example python:
    import mlc
    mlc.ones(2, 3).t().as_strided((2,), (1,))
fix: x.contiguous().as_strided(...), which copies the elements.

MLC0772 An operation is not defined for sparse tensors, for tensors of this layout, or for these together.
Where PyTorch would compute a dense result, or none, nothing is made dense behind the program's back.
example python:
    import mlc
    mlc.exp(mlc.eye(2).to_sparse())
fix: call to_dense() first, or apply the function to the values: s.with_values(mlc.exp(s.values())).

MLC0773 A sparse tensor is used where a dense one is needed.
example python:
    import mlc
    mlc.eye(2).to_sparse().numpy()
fix: x.to_dense() has all elements, x.values() the stored ones.

MLC0774 The indices, values and size of a sparse tensor do not fit together, or an index is out of range.
example python:
    import mlc
    mlc.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))
fix: pass a greater size, or mend the indices.

MLC0775 A layout has no such component, or a tensor cannot have this layout.
example python:
    import mlc
    mlc.eye(2).to_sparse().crow_indices()
fix: convert it first, by to_sparse(layout=...), with sizes of blocks that divide those of the tensor.

MLC0776 Indices or values are asked of a sparse tensor in which several values may be parts of one element.
example python:
    import mlc
    mlc.sparse_coo_tensor([[0, 0]], [1.0, 2.0]).values()
fix: call coalesce() first, or use _indices() and _values().

MLC0777 Sparse operands have shapes, or numbers of sparse dimensions, that do not go together.
example python:
    import mlc
    mlc.eye(2).to_sparse() + mlc.eye(3).to_sparse()
fix: sparse tensors do not broadcast against each other; make one of them dense.

MLC0778 An optimizer is given a sparse gradient, or a parameter, that it has no step for, or SparseAdam a dense one.
example python:
    import mlc
    table = mlc.nn.Embedding(4, 2, sparse=True)
    opt = mlc.optim.Adam(table.parameters())
    table(mlc.tensor([1])).sum().backward()
    opt.step()
fix: use SparseAdam, SGD or Adagrad without weight decay for layers with sparse=True, and others for the rest.

MLC0996 The first step of an optimizer with a step of its own is recorded, which makes its state.
A function that is compiled runs as Python in that call, and is compiled in the next one.
example python:
    import mlc
    class Descent(mlc.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})
        def step(self):
            for p in self.param_groups[0]["params"]:
                self.state[p]["before"] = p.detach().clone()
                p.data.sub_(p.grad, alpha=0.1)
    w = mlc.ones(2, requires_grad=True)
    opt = Descent([w])
    def step():
        (w * w).sum().backward()
        opt.step()
    mlc.lower(step)
fix: call the function, or the step, once before.

MLC0440 A learning-rate scheduler was given no optimizer whose learning rates it can set.
An optimizer made without parameters holds nothing; its learning rate is a function of mlc.optim.schedules.
example python:
    import mlc
    mlc.optim.lr_scheduler.StepLR(mlc.optim.SGD(lr=0.1), step_size=3)
fix: make the optimizer with parameters and a number as learning rate, as in SGD(model.parameters(), lr=0.1).

MLC0441 A setting of a learning-rate scheduler is out of range, or does not fit the groups of the optimizer.
example python:
    import mlc
    opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
    mlc.optim.lr_scheduler.LambdaLR(opt, [lambda epoch: 1.0, lambda epoch: 0.5])
fix: the message says which values are allowed.

MLC0442 A learning-rate scheduler is to go on from an epoch, and the optimizer does not know its initial rates.
They are the entry initial_lr of each group, which the first scheduler of an optimizer makes and its state keeps.
example python:
    import mlc
    opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
    mlc.optim.lr_scheduler.StepLR(opt, step_size=3, last_epoch=5)
fix: load the state of the optimizer before the scheduler is made, or leave out last_epoch to begin.

MLC0443 A learning-rate scheduler of a fixed number of steps is called more often.
example python:
    import mlc
    opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
    scheduler = mlc.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=2, cycle_momentum=False)
    for _ in range(3):
        scheduler.step()
fix: pass as total_steps the number of batches of all epochs.

MLC0444 A state was loaded into a learning-rate scheduler of another class, or for another number of groups.
example python:
    import mlc
    opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
    state = mlc.optim.lr_scheduler.StepLR(opt, step_size=3).state_dict()
    mlc.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9).load_state_dict(state)
fix: load the result of state_dict of a scheduler that was made in the same way.

MLC0445 The norm of gradients that are to be clipped is infinite or not a number.
example python:
    import mlc
    mlc.nn.utils.get_total_norm(mlc.tensor([1e38, 1e38]), error_if_nonfinite=True)
fix: find what overflows, with mlc.detect_anomaly() for instance, or lower the learning rate.

MLC0446 Something that is no tensor stands among parameters, gradients or vectors.
example python:
    import mlc
    mlc.nn.utils.clip_grad_norm_([1.0, 2.0], max_norm=1.0)
fix: pass tensors, such as model.parameters().

MLC0447 A vector and the parameters that it stands for have different numbers of elements, or there are none.
example python:
    import mlc
    mlc.nn.utils.vector_to_parameters(mlc.ones(5), [mlc.zeros(2, 2)])
fix: pass the same parameters to parameters_to_vector and vector_to_parameters.

MLC0448 A class of learning-rate schedulers does not define how rates are computed.
example python:
    import mlc
    opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
    mlc.optim.lr_scheduler.LRScheduler(opt)
fix: derive a class that defines get_lr, which returns one rate for each group.

MLC0726 The forward or backward of a Function gave what its arguments do not allow.
Backward returns one gradient for each argument of forward: a tensor of the argument's shape, or None; and None for an
argument that is no tensor. save_for_backward takes tensors, anything else is an attribute of the context.
example python:
    import mlc
    class Product(mlc.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor
        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.factor
    Product.apply(mlc.ones(2, requires_grad=True), 3.0).sum().backward()
fix: return a tuple with a gradient or None for each argument of forward.

MLC0727 A hook on saved tensors is no function, or unpacks something other than was packed.
example python:
    import mlc
    x = mlc.ones(2, requires_grad=True)
    with mlc.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda packed: packed):
        y = (x * x).sum()
    y.backward()
fix: return from the second hook a tensor of the shape, dtype and elements that the first one was given.

MLC0728 Hooks on saved tensors are added where the program has disabled them.
example python:
    import mlc
    with mlc.autograd.graph.disable_saved_tensors_hooks("not within this library"):
        with mlc.autograd.graph.save_on_cpu():
            pass
fix: add the hooks outside of the scope of disable_saved_tensors_hooks.

MLC0729 A Function declares arguments to have been changed in place.
example python:
    import mlc
    class Doubled(mlc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2
    Doubled.apply(mlc.ones(2))
fix: return a new tensor, and leave out mark_dirty.

MLC0730 A backward that is marked once_differentiable is differentiated.
example python:
    import mlc
    class Square(mlc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x
        @staticmethod
        @mlc.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return 2 * gradient * ctx.saved_tensors[0]
    x = mlc.tensor(3.0, requires_grad=True)
    slope, = mlc.autograd.grad(Square.apply(x), x, create_graph=True)
    slope.backward()
fix: write backward in operations of mlc and leave out the mark, or detach its results.

MLC0731 A subclass of Function lacks a method, or is used as an object.
It has static methods forward and backward (or vjp, but not both), and is called by its class method apply.
example python:
    import mlc
    class Double(mlc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
    Double.apply(mlc.ones(2, requires_grad=True)).sum().backward()
fix: define the method that the message names, as a static method.

MLC0732 An argument of a function of mlc.autograd or mlc.utils.checkpoint has none of its values, or excludes another.
example python:
    import mlc
    mlc.autograd.functional.jacobian(mlc.sin, mlc.ones(2), strategy="forward-mode")
fix: see the message for the values, and the documentation of the function.

MLC0733 A checkpointed function does something else when backward calls it again.
example python:
    import mlc
    calls = []
    def f(x):
        calls.append(x)
        return x.sin().cos() if len(calls) == 1 else x.sin()
    mlc.utils.checkpoint.checkpoint(f, mlc.ones(2, requires_grad=True)).sum().backward()
fix: have the function depend on its arguments alone, or call it without checkpoint.

MLC0734 A derivative that is asked for with strict=True does not depend on an input.
example python:
    import mlc
    mlc.autograd.functional.jacobian(lambda x, y: x * 2, (mlc.ones(2), mlc.ones(2)), strict=True)
fix: leave out the input, or leave out strict, for which the derivative is zero.

MLC0735 A function of mlc.autograd.functional was given or returned what it does not differentiate.
The inputs and the result are tensors or tuples of tensors, v is like the one or the other, and what has a Hessian is a
number.
example python:
    import mlc
    mlc.autograd.functional.hessian(lambda x: x * x, mlc.ones(2))
fix: pass tensors, and vectors of their shapes.

MLC0836 There is no dual level, or not the one that is named.
Tensors are dual within a level of mlc.autograd.forward_ad only. Its number is 0.
example python:
    import mlc
    mlc.autograd.forward_ad.make_dual(mlc.ones(2), mlc.ones(2))
fix: make dual tensors within `with mlc.autograd.forward_ad.dual_level():`.

MLC0837 A dual level is entered within another one.
example python:
    import mlc
    with mlc.autograd.forward_ad.dual_level():
        with mlc.autograd.forward_ad.dual_level():
            pass
fix: use mlc.jvp of a function that calls mlc.jvp for derivatives of derivatives, or gradients of tangents.

MLC0838 A tangent does not fit its primal, or one of the two cannot be part of a dual tensor.
Both are dense tensors of floats or complex numbers, of one shape, dtype and device, that are not dual themselves.
example python:
    import mlc
    with mlc.autograd.forward_ad.dual_level():
        mlc.autograd.forward_ad.make_dual(mlc.ones(2), mlc.ones(3))
fix: pass a tangent of the shape and dtype of the primal.

MLC0839 Dual tensors are used where tangents are not translated.
Within a function that is recorded there are no dual levels. A compiled function that is called with dual tensors gives
dual results, unless it changes tensors in place, assigns buffers of modules or computes gradients.
example python:
    import mlc
    @mlc.compile
    def f(x):
        with mlc.autograd.forward_ad.dual_level():
            return mlc.autograd.forward_ad.make_dual(x, x)
    f(mlc.ones(2))
fix: call the function itself, which is not compiled, or differentiate it by mlc.jvp.
'''
