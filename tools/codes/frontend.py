"""Error codes of the frontend: functions, arguments, arrays, derivatives, modules."""

TEXT = r'''
MLC0300 The program or the call is wrong in a way that has no code of its own.
This is the fallback for errors in programs and calls.
example text:
    error[MLC0300]: ...
fix: the message says what is wrong.

MLC0320 A module has no function of this name.
example python:
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module
    run_function(parse_module("func.func @f() { func.return }"), "g", [])
fix: call one of the functions that the message lists.

MLC0321 A function is called with too few or too many arguments, or with an unknown keyword argument.
example python:
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module
    run_function(parse_module("func.func @f(%x: f32) { func.return }"), "f", [])
fix: pass the arguments that the function takes.

MLC0322 An argument has a different number of dimensions than its type.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x: x + 1, args=[mlc.spec("B", 3)])
    f(np.zeros(3, np.float32))
fix: reshape the array, or correct the specification.

MLC0323 The shape of an argument does not match its type, or binds a size symbol to two different sizes.
A symbol stands for the same size in all arguments of a function.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x, y: (x, y + 1), args=[mlc.spec("B"), mlc.spec("B")])
    f(np.zeros(3, np.float32), np.zeros(4, np.float32))
fix: pass arrays whose sizes agree, or use different symbols.

MLC0324 A compiled function is called with an argument that is not an array.
example text:
    error[MLC0324]: argument x is a str, expected an array
fix: pass numpy arrays, mlc tensors, or anything with __dlpack__.

MLC0325 The dtype of an argument differs from that of its type.
Code is compiled for one dtype, and arguments are never converted implicitly.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x: x + 1, args=[mlc.spec("B", dtype="float32")])
    f(np.zeros(3, np.float64))
fix: convert the array with .astype, or correct the specification.

MLC0326 A donated array cannot be written in place.
Results may reuse the memory of a donated argument, so it must be writable, contiguous and in native byte order.
example python:
    import mlc, numpy as np
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    mlc.compile(lambda x: x + 1, donate="x")(x)
fix: donate a copy, or leave the parameter out of donate.

MLC0327 No argument determines the value of a size symbol.
example text:
    error[MLC0327]: f: no argument binds size N
fix: use the symbol in the shape of an argument, or compile for a fixed size.

MLC0328 A computed size is invalid (negative, divided by zero, or too large for memory), or a slice is out of bounds.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x: mlc.zeros(x.shape[0] - 5) + x[0], args=[mlc.spec("B")])
    f(np.zeros(3, np.float32))
fix: call with sizes for which all shapes are valid.

MLC0329 A donated array shares memory with another argument.
example python:
    import mlc, numpy as np
    x = np.zeros(3, np.float32)
    mlc.compile(lambda x, y: x + y, donate="x")(x, x)
fix: pass a copy of one of them.

MLC0337 There is no such device.
Tensors are in the CPU's memory or on an NVIDIA GPU, and functions run where their arguments are.
example python:
    import mlc
    mlc.zeros(3, device="mps")
fix: leave the device out, or use "cpu" or "cuda".

MLC0338 A name from PyTorch is used that mlc deliberately does not have.
There is something that does the same, or a reason why it cannot be had.
example python:
    import mlc
    mlc.ones(3).pin_memory()
fix: the message says what to write instead.

MLC0339 The operands of an operation are on different devices.
An operation runs on the device of its tensors. Numbers, tensors of one element and numpy arrays are copied to it; other
tensors are not, since the copy would take longer than most operations.
example text:
    model.py:7:9: error[MLC0339]: mul: operand 0 is on cuda:0, operand 1 on cpu
fix: move one of them, as in x.to("cuda").

MLC0340 An index is out of range.
This is detected at run time; the location is the line of the indexing operation.
example python:
    import mlc, numpy as np
    mlc.index_select(mlc.tensor([1.0, 2.0]), 0, mlc.tensor([7]))
fix: use indices from -size to size - 1.

MLC0341 Two element types have no common type.
example text:
    error[MLC0341]: ui64 and i64 elements have no common type
fix: cast one of the operands.

MLC0342 The value given as a dtype is not an element type.
example python:
    import mlc
    mlc.zeros(3, dtype="float31")
fix: use a name such as "float32", mlc.float32 or a numpy dtype; the message lists them.

MLC0343 A tensor is used after it was donated to a call.
Its memory now belongs to the results of that call.
example python:
    import mlc
    x = mlc.zeros(3)
    y = mlc.compile(lambda x: x + 1, donate="x")(x)
    x + 1
fix: use the results of the call, or do not donate the argument.

MLC0344 A tensor cannot be converted to the Python number or sequence that is needed.
example python:
    import mlc
    [1, 2, 3][mlc.tensor(1.5)]
fix: index Python sequences with integer tensors of one element; only a tensor of one element converts to a number, and
a 0-d tensor has no length.

MLC0345 A value cannot be converted to an array.
example python:
    import mlc
    mlc.tensor([[1, 2], [3]])
fix: pass numbers, nested lists of equal lengths, numpy arrays, or anything with __dlpack__.

MLC0346 An array of another library cannot be shared.
example text:
    error[MLC0346]: a torch.Tensor that is not in the CPU's memory cannot be used here
fix: copy it to the CPU's memory, and detach it from its library's gradients.

MLC0347 An argument is neither an array nor hashable.
An argument that is not an array becomes a constant of the compiled code and part of its cache key, so it must be
hashable.
example python:
    import mlc
    mlc.compile(lambda x: 1)({1, 2})
fix: pass a tuple, a string, a number or an array.

MLC0348 A Python integer does not fit in 64 bits, or in the element type it is converted to.
example python:
    import mlc
    mlc.add(mlc.zeros(3), 2**70)
fix: use a float, or a smaller number.

MLC0349 A module cannot be called.
example python:
    import mlc
    mlc.nn.ModuleList([mlc.nn.ReLU()])(mlc.ones(3))
fix: define `forward`, or call its submodules.

MLC0350 Python needs the value of a tensor that is known only when the compiled function runs.
While a function is recorded, its tensors have types but no elements.
example python:
    import mlc, numpy as np
    def f(x):
        return mlc.zeros(x.sum().item())
    mlc.compile(f)(np.ones(3, np.float32))
fix: compute the number outside the compiled function, or compile with fallback=True.

MLC0351 A traced value is used after the function that it belongs to has been recorded.
example python:
    import mlc, numpy as np
    kept = []
    mlc.grad(lambda x: kept.append(x) or x.sum())(np.ones(3, np.float32))
    kept[0] + 1
fix: return it from the function instead of storing it.

MLC0352 A number cannot be represented in the element type it should take.
example text:
    error[MLC0352]: full: 1.5 is no int64
fix: convert the number, or choose another element type.

MLC0353 An argument that must be a tensor is missing or is not one.
example python:
    import mlc
    mlc.clamp(mlc.zeros(3))
fix: pass the argument that the message asks for.

MLC0354 An operation needs integers.
example python:
    import mlc
    mlc.index_select(mlc.zeros(3), 0, mlc.zeros(3))
fix: cast the tensor, for example with mlc.cast(x, mlc.int64).

MLC0355 A dimension is not given as an integer.
example python:
    import mlc
    mlc.sum(mlc.zeros(3), dim=0.5)
fix: give dimensions as integers from -rank to rank - 1.

MLC0356 A dimension is out of range.
example python:
    import mlc
    mlc.softmax(mlc.zeros(3), dim=1)
fix: use -rank to rank - 1.

MLC0357 A list of dimensions has duplicates, has the wrong length, or is not a permutation.
example python:
    import mlc
    mlc.permute(mlc.zeros(2, 3), (0, 0))
fix: name each dimension once, and as many dimensions as the message says.

MLC0358 A shape, or a number of pieces, does not fit the number of elements.
example python:
    import mlc
    mlc.reshape(mlc.zeros(2, 3), (4, 2))
fix: the product of the new sizes must be the number of elements; one size may be -1 and is inferred from the others.

MLC0359 A function is not defined for this element type.
example python:
    import mlc
    mlc.mean(mlc.arange(3))
fix: cast the argument first.

MLC0360 An option has a value that is not supported.
example python:
    import mlc
    mlc.nn.functional.gelu(mlc.zeros(3), approximate="cubic")
fix: use one of the values that the message lists.

MLC0361 An integer is raised to a negative power.
example python:
    import mlc
    mlc.pow(mlc.arange(3), -1)
fix: cast to a float type first.

MLC0362 A condition or mask does not have dtype bool.
example python:
    import mlc
    mlc.where(mlc.zeros(3), 1.0, 2.0)
fix: pass a comparison, for example x != 0.

MLC0363 A reduction over no elements is not defined.
example python:
    import mlc
    mlc.max(mlc.zeros(0))
fix: reduce over a nonempty dimension; only reductions with an identity element, such as sum and prod, accept an empty
one.

MLC0364 A tensor has the wrong number of dimensions for the function.
example python:
    import mlc
    mlc.mm(mlc.zeros(3), mlc.zeros(3))
fix: reshape it; the message says how many are expected.

MLC0365 The shape of a result depends on a size or number that is unknown at compile time.
example text:
    error[MLC0365]: one_hot: the number of classes must be given: it decides the shape of the result
fix: give the number, or compile for a fixed size.

MLC0366 A slice or an index is out of range, or its step is 0.
example python:
    import mlc
    mlc.zeros(3)[5]
fix: use indices from -size to size - 1, and a step other than 0.

MLC0367 The sizes of the operands do not match.
example python:
    import mlc
    mlc.matmul(mlc.zeros(2, 3), mlc.zeros(4, 2))
fix: transpose or reshape one operand; the notes say where each operand comes from.

MLC0368 The equation of einsum is ill-formed or does not match its operands.
example python:
    import mlc
    mlc.einsum("ij,jk->iz", mlc.zeros(2, 3), mlc.zeros(3, 2))
fix: use one letter per dimension of each operand; the output may name each letter of the operands once, and no others.

MLC0369 A subscript is not a valid index.
example python:
    import mlc
    mlc.zeros(3)["a"]
fix: index with integers, slices, None, ..., integer tensors and boolean masks; to select by a single truth value, use
mlc.where.

MLC0370 The argument is not a random key.
A key is a tensor of two uint32 elements; a row of a tensor of keys is a key.
example python:
    import mlc
    mlc.random.uniform(mlc.zeros(2), (3,))
fix: make a key with mlc.random.key(seed), and derive others from it with mlc.random.split.

MLC0371 A size in a specification is ill-formed, or has a symbol that is no size of an argument by itself.
example python:
    import mlc
    mlc.spec("B+", 3)
fix: use a number, a symbol such as "B", or an expression such as "2*B" beside an argument of size "B".

MLC0372 argnums names a positional argument that the call does not have.
example python:
    import mlc
    mlc.grad(lambda x: (x * x).sum(), argnums=1)(mlc.zeros(3))
fix: count positional arguments from 0.

MLC0373 A derivative is requested with respect to an argument that is not differentiable.
example python:
    import mlc
    mlc.grad(lambda x: x.sum())(mlc.arange(3))
fix: differentiate with respect to floats; select the arguments with argnums.

MLC0374 The gradient of a function is requested whose result is not a scalar.
example python:
    import mlc
    mlc.grad(lambda x: x * x)(mlc.zeros(3))
fix: return a sum or a mean, or use mlc.vjp.

MLC0375 A cotangent differs in shape or element type from the result that it belongs to.
example text:
    error[MLC0375]: a cotangent has type tensor<2xf32>, its result tensor<3xf32>
fix: pass cotangents with the shapes and element types of the results.

MLC0376 Containers are nested too deeply.
example text:
    error[MLC0376]: containers are nested more than 100 deep
fix: flatten them; a container that contains itself is not a tree.

MLC0377 Two trees of containers that must have the same structure differ.
example text:
    error[MLC0377]: the trees differ at params['w']: an array and a dict
fix: pass gradients and state of the same structure as the parameters.

MLC0378 The parameters of an optimizer are missing, no leaves, no tensors, or one tensor twice.
Within a module, layers may share a tensor. In lists and dicts, each entry has its own gradient and updates.
example python:
    import mlc
    w = mlc.ones(3)
    mlc.optim.SGD(0.1).init({"encoder": w, "decoder": w})
fix: put both into one mlc.nn.Module, or make a copy with mlc.tensor.

MLC0379 The number of threads is not a positive integer.
example python:
    import mlc
    mlc.set_num_threads(0)
fix: pass an integer of at least 1 to mlc.set_num_threads, or in the environment variable MLC_NUM_THREADS.

MLC0380 donate, static or args of mlc.compile do not match the parameters of the function.
example python:
    import mlc
    mlc.compile(lambda x: x, donate="y")
fix: name parameters of the function, each in at most one of donate and static.

MLC0381 An argument is a container, but the specification is that of a single array.
example python:
    import mlc
    mlc.compile(lambda x: x["a"], args=[mlc.spec(3)])({"a": mlc.zeros(3)})
fix: specify a container of the same structure.

MLC0382 A state does not match the structure of the module that loads it.
example text:
    error[MLC0382]: the state does not fit the module: missing weight
fix: load a state that was saved from a module of the same structure.

MLC0383 A setting of an optimiser is out of range.
example python:
    import mlc
    mlc.optim.SGD(0.1, nesterov=True)
fix: the message says which values are allowed.

MLC0384 A buffer of a module is assigned where the new value would be lost.
A function that mlc.grad or mlc.vmap transforms returns the new buffers of the modules among its arguments. Modules that
it reaches by itself (globals, closures) would keep the buffers that they had.
example python:
    import mlc
    class Counted(mlc.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", mlc.tensor(0))
        def forward(self, x):
            self.calls = self.calls + 1
            return x.sum()
    model = Counted()
    mlc.grad(lambda x: model(x))(mlc.ones(3))
fix: pass the module as an argument, or call its eval() if it is not in training.

MLC0385 A module has no submodule of this name.
example python:
    import mlc
    mlc.nn.Sequential(mlc.nn.ReLU()).get_submodule("1")
fix: use one of the names that the message lists.

MLC0386 The name is not valid for a submodule, parameter or buffer of a module.
example python:
    import mlc
    mlc.nn.ModuleDict({"forward": mlc.nn.ReLU()})
fix: use a name that is not empty, contains no dot, and is not the name of an attribute or method.

MLC0400 in_dims or out_dims of vmap does not match the arguments or results.
example python:
    import mlc
    mlc.vmap(lambda x, w: x @ w)(mlc.ones(5, 3), 2.0)
fix: give an axis, or None, for each tensor; a container of axes must have the structure of the argument or result.

MLC0401 The mapped axes of vmap have different sizes.
example python:
    import mlc
    mlc.vmap(lambda x, y: x + y)(mlc.ones(5, 3), mlc.ones(4, 3))
fix: map axes of equal size, and pass None in in_dims for arguments that are the same for all batch elements.

MLC0405 A custom_vjp or custom_jvp function is differentiated before its rule is defined.
example python:
    import mlc
    f = mlc.custom_vjp(lambda x: (x * x).sum())
    mlc.grad(f)(mlc.ones(3))
fix: call f.defvjp(forward, backward) for mlc.custom_vjp, or f.defjvp(rule) for mlc.custom_jvp.

MLC0406 A custom derivative rule returns the wrong structure or types.
example python:
    import mlc
    f = mlc.custom_vjp(lambda x: (x * x).sum())
    f.defvjp(lambda x: (x, x), lambda x, ct: (2 * x * ct,))
    mlc.grad(f)(mlc.ones(3))
fix: `forward` of defvjp must return (result, residuals), and the rule of defjvp (result, tangent), where the result has
the structure and types of the function's own.

MLC0407 A function with a custom derivative rule has keyword-only parameters.
example python:
    import mlc
    def scaled(x, *, by): return (x * by).sum()
    f = mlc.custom_vjp(scaled)
    mlc.grad(lambda x: f(x, by=2.0))(mlc.ones(3))
fix: make them positional; the rule takes or returns one tangent or cotangent for each.

MLC0408 Python code depends on the value of a symbolic size.
The function is recorded once for all sizes, so the program cannot branch on a size, or convert it to a number.
example python:
    import mlc
    mlc.lower(lambda x: x.sum() if x.shape[0] > 3 else x.mean(), args=[mlc.spec("B")])
fix: compile for fixed sizes, or write code that is valid for all sizes.

MLC0686 The program raises an exception because a size is symbolic.
The function is then compiled for that one size, which its report notes. An exception that the program raises with fixed
sizes too is raised unchanged.
example text:
    model.py:4:12: error[MLC0686]: TypeError: an integer is required
fix: none is required; to avoid it, compile with dynamic=False, or compute with tensors instead of sizes.

MLC0409 Memory use is requested for sizes that the function is not compiled for.
example python:
    import mlc
    f = mlc.compile(lambda x: x * 2, args=[mlc.spec("B")])
    f.compiled.peak_bytes(N=3)
fix: give a number for each symbol of the specification, and for no other.

MLC0420 The operands of a matrix product have different float types.
Elementwise functions promote to the wider type. Matrix products do not, as in PyTorch: a single float64 batch (numpy's
default dtype) would turn all activations of a float32 model into float64.
example python:
    import mlc, numpy as np
    mlc.nn.Linear(3, 2)(np.ones((1, 3)))
fix: make the data float32, as in x.astype(np.float32), or convert the model to float64 with model.double().

MLC0421 An argument has a type that the parameter does not accept.
example python:
    import mlc
    mlc.nn.functional.hardshrink(mlc.ones(3), None)
fix: pass a value of the type that the message names.

MLC0422 A numpy function rejects the elements of tensors.
numpy's functions accept tensors: a ufunc that mlc also has runs as mlc's, any other runs in numpy on the elements.
example python:
    import mlc, numpy as np
    a = np.zeros(3, np.float32)
    a += mlc.ones(2)
fix: the message is numpy's own, and says what it rejects.

MLC0995 A frozen function changes what is constant in it.
With freeze=True, the tensors that a function reaches are constants, of which parts of it are computed once. A function
that changes one of them in every call, as batch normalization does in training, cannot be frozen.
example python:
    import mlc
    model = mlc.nn.BatchNorm1d(3)
    mlc.compile(model, freeze=True)(mlc.ones(2, 3))
fix: call model.eval() before, or compile it without freeze.
'''
