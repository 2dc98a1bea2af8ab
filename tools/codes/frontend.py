"""Codes of what users write and call: functions, arguments, arrays, derivatives, modules."""

TEXT = r'''
MLC0300 The program or the call is wrong, in a way that has no code of its own.
The fallback for errors in what users write.
example text:
    error[MLC0300]: ...
fix: the message says what is wrong.

MLC0320 A module has no function of this name.
example python:
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module
    run_function(parse_module("func.func @f() { func.return }"), "g", [])
fix: call one of the functions that the message lists.

MLC0321 A function is called with too few or too many arguments, or with one that it does not have.
example python:
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module
    run_function(parse_module("func.func @f(%x: f32) { func.return }"), "f", [])
fix: pass the arguments that the function takes.

MLC0322 An argument has not as many dimensions as its type.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x: x + 1, args=[mlc.spec("B", 3)])
    f(np.zeros(3, np.float32))
fix: reshape the array, or correct the specification.

MLC0323 An argument has another size than its type, or than its symbol has elsewhere.
Equal symbols stand for equal sizes, in all arguments of a function.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x, y: (x, y + 1), args=[mlc.spec("B"), mlc.spec("B")])
    f(np.zeros(3, np.float32), np.zeros(4, np.float32))
fix: pass arrays whose sizes agree, or use another symbol.

MLC0324 A compiled function is called with something that is no array.
example text:
    error[MLC0324]: argument x is a str, expected an array
fix: pass numpy arrays, mlc tensors, or anything with __dlpack__.

MLC0325 An argument has another dtype than its type.
Compiled code is for one dtype; nothing is converted behind your back.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x: x + 1, args=[mlc.spec("B", dtype="float32")])
    f(np.zeros(3, np.float64))
fix: convert the array with .astype, or correct the specification.

MLC0326 A donated array cannot be written in place.
Donating an argument lets the results take its memory, so it has to be writable, contiguous and in native byte order.
example python:
    import mlc, numpy as np
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    mlc.compile(lambda x: x + 1, donate="x")(x)
fix: donate a copy, or leave the parameter out of donate.

MLC0327 No argument tells the number of a size symbol.
example text:
    error[MLC0327]: f: no argument binds size N
fix: take the size from an argument, or compile for a number.

MLC0328 A size that is computed cannot be: negative, divided by zero, beyond all memory; or a slice leaves its tensor.
example python:
    import mlc, numpy as np
    f = mlc.compile(lambda x: mlc.zeros(x.shape[0] - 5) + x[0], args=[mlc.spec("B")])
    f(np.zeros(3, np.float32))
fix: call with sizes for which all shapes make sense.

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

MLC0338 A name of PyTorch is looked up that mlc does not have, for a reason.
Tensors never change and record nothing: in-place methods and `backward` could not do here what they do there.
example python:
    import mlc
    mlc.ones(3).add_(1)
fix: the message says what to write in its place.

MLC0339 Tensors on different devices meet.
An operation runs where its tensors are. Numbers, tensors of one element and numpy arrays are brought there; whole
tensors are not, since that takes longer than most operations.
example text:
    model.py:7:9: error[MLC0339]: mul: operand 0 is on cuda:0, operand 1 on cpu
fix: move one of them, as in x.to("cuda").

MLC0340 An index is out of range.
Found while the program runs; the location is the line of the operation that indexes.
example python:
    import mlc, numpy as np
    mlc.index_select(mlc.tensor([1.0, 2.0]), 0, mlc.tensor([7]))
fix: use positions from -size to size - 1.

MLC0341 Two element types have no common type.
example text:
    error[MLC0341]: ui64 and i64 elements have no common type
fix: cast one of the operands.

MLC0342 This is no element type.
example python:
    import mlc
    mlc.zeros(3, dtype="float31")
fix: use a name such as "float32", mlc.float32 or a numpy dtype; the message lists them.

MLC0343 A tensor is used that was donated to a call.
Its memory belongs to the results of that call.
example python:
    import mlc
    x = mlc.zeros(3)
    y = mlc.compile(lambda x: x + 1, donate="x")(x)
    x + 1
fix: use what the call returned, or do not donate the argument.

MLC0344 A tensor is used as a Python number or sequence that it is not.
example python:
    import mlc
    [1, 2, 3][mlc.tensor(1.5)]
fix: index with integer tensors of one element; 0-d tensors have no length, and only one element is a number.

MLC0345 Something cannot be made an array.
example python:
    import mlc
    mlc.tensor([[1, 2], [3]])
fix: pass numbers, nested lists of equal lengths, numpy arrays, or anything with __dlpack__.

MLC0346 An array of another library cannot be shared.
example text:
    error[MLC0346]: a torch.Tensor that is not in the CPU's memory cannot be used here
fix: copy it to the CPU's memory, and detach it from its library's gradients.

MLC0347 An argument is neither an array nor hashable.
What is no array is part of what is compiled, so it must be possible to look it up.
example python:
    import mlc
    mlc.compile(lambda x: 1)({1, 2})
fix: pass a tuple, a string, a number or an array.

MLC0348 A Python integer does not fit in 64 bits, or in the element type that it is to have.
example python:
    import mlc
    mlc.add(mlc.zeros(3), 2**70)
fix: use a float, or a smaller number.

MLC0349 A module cannot be called.
example python:
    import mlc
    mlc.nn.ModuleList([mlc.nn.ReLU()])(mlc.ones(3))
fix: define `forward`, or call the modules that it holds.

MLC0350 Python needs a number that is only known when the compiled function runs.
While a function is recorded its arrays have types but no elements.
example python:
    import mlc, numpy as np
    def f(x):
        return mlc.zeros(x.sum().item())
    mlc.compile(f)(np.ones(3, np.float32))
fix: compute the number outside the compiled function, or compile with fallback=True.

MLC0351 A value of a function that was recorded is used after it.
example python:
    import mlc, numpy as np
    kept = []
    mlc.grad(lambda x: kept.append(x) or x.sum())(np.ones(3, np.float32))
    kept[0] + 1
fix: return it from the function instead of storing it.

MLC0352 A number does not fit the element type it should take.
example text:
    error[MLC0352]: full: 1.5 is no int64
fix: convert the number, or choose another element type.

MLC0353 A tensor is expected where there is none.
example python:
    import mlc
    mlc.clamp(mlc.zeros(3))
fix: pass what the message asks for.

MLC0354 An operation needs integers.
example python:
    import mlc
    mlc.index_select(mlc.zeros(3), 0, mlc.zeros(3))
fix: cast the tensor, for example with mlc.cast(x, mlc.int64).

MLC0355 A dimension is given by something that is no integer.
example python:
    import mlc
    mlc.sum(mlc.zeros(3), dim=0.5)
fix: name dimensions by integers, from -rank to rank - 1.

MLC0356 A dimension is out of range.
example python:
    import mlc
    mlc.softmax(mlc.zeros(3), dim=1)
fix: use -rank to rank - 1.

MLC0357 A list of dimensions is not what the operation needs: repeated, too long, or no permutation.
example python:
    import mlc
    mlc.permute(mlc.zeros(2, 3), (0, 0))
fix: name each dimension once, and as many as the message says.

MLC0358 A shape or a number of pieces does not fit.
example python:
    import mlc
    mlc.reshape(mlc.zeros(2, 3), (4, 2))
fix: the sizes of the new shape multiply to the number of elements; -1 stands for the one that is left.

MLC0359 A function is not defined for this element type.
example python:
    import mlc
    mlc.mean(mlc.arange(3))
fix: cast the argument first.

MLC0360 An option has a value that does not exist.
example python:
    import mlc
    mlc.nn.functional.gelu(mlc.zeros(3), approximate="cubic")
fix: use one of the values that the message lists.

MLC0361 An integer is raised to a negative power.
example python:
    import mlc
    mlc.pow(mlc.arange(3), -1)
fix: cast to a float type first.

MLC0362 A condition is not of bool.
example python:
    import mlc
    mlc.where(mlc.zeros(3), 1.0, 2.0)
fix: compare, for example x != 0.

MLC0363 A reduction over no elements is not defined.
example python:
    import mlc
    mlc.max(mlc.zeros(0))
fix: reduce over a dimension that has elements; sum and prod have a value for none.

MLC0364 A tensor has the wrong number of dimensions for the function.
example python:
    import mlc
    mlc.mm(mlc.zeros(3), mlc.zeros(3))
fix: reshape it; the message says how many are expected.

MLC0365 The shape of a result would depend on a size or number that is not known.
example text:
    error[MLC0365]: one_hot: the number of classes must be given: it decides the shape of the result
fix: give the number, or compile for a size that is known.

MLC0366 A slice or an index is out of range, or its step is 0.
example python:
    import mlc
    mlc.zeros(3)[5]
fix: use positions from -size to size - 1.

MLC0367 Sizes of operands do not fit together.
example python:
    import mlc
    mlc.matmul(mlc.zeros(2, 3), mlc.zeros(4, 2))
fix: transpose or reshape one operand; the notes say where each comes from.

MLC0368 The equation of einsum does not fit its operands.
example python:
    import mlc
    mlc.einsum("ij,jk->iz", mlc.zeros(2, 3), mlc.zeros(3, 2))
fix: name each dimension by a letter, and in the result only letters of operands, each once.

MLC0369 This is no index.
example python:
    import mlc
    mlc.zeros(3)["a"]
fix: index with integers, slices, None, ..., integer tensors and masks; choose by one truth value with mlc.where.

MLC0370 This is no random key.
A key is a tensor of two uint32. A row of a tensor of keys is one.
example python:
    import mlc
    mlc.random.uniform(mlc.zeros(2), (3,))
fix: make one with mlc.random.key(seed), and others of it with mlc.random.split.

MLC0371 A size in a specification is ill-formed.
example python:
    import mlc
    mlc.spec("B+", 3)
fix: use a number, a symbol such as "B", or an expression such as "2*B".

MLC0372 argnums names a parameter that the function is not called with.
example python:
    import mlc
    mlc.grad(lambda x: (x * x).sum(), argnums=1)(mlc.zeros(3))
fix: count positional arguments from 0.

MLC0373 A derivative is asked for with respect to something that has none.
example python:
    import mlc
    mlc.grad(lambda x: x.sum())(mlc.arange(3))
fix: differentiate with respect to floats; choose the parameters with argnums.

MLC0374 The gradient is asked for of a function that does not return one number.
example python:
    import mlc
    mlc.grad(lambda x: x * x)(mlc.zeros(3))
fix: return a sum or a mean, or use mlc.vjp.

MLC0375 A cotangent does not fit the result that it belongs to.
example text:
    error[MLC0375]: a cotangent has type tensor<2xf32>, its result tensor<3xf32>
fix: pass cotangents of the results' shapes and element types.

MLC0376 Containers are nested too deeply.
example text:
    error[MLC0376]: containers are nested more than 100 deep
fix: flatten them; one that contains itself is no tree.

MLC0377 Two trees of containers differ where they should be alike.
example text:
    error[MLC0377]: the trees differ at params['w']: an array and a dict
fix: pass gradients and state of the same structure as the parameters.

MLC0378 One tensor is two parameters.
Within a module, layers may share a tensor. In lists and dicts, each place has a gradient and updates of its own.
example python:
    import mlc
    w = mlc.ones(3)
    mlc.optim.SGD(0.1).init({"encoder": w, "decoder": w})
fix: put both into one mlc.nn.Module, or make a copy with mlc.tensor.

MLC0379 The number of threads is no number of threads.
example python:
    import mlc
    mlc.set_num_threads(0)
fix: give a whole number from 1 on, to mlc.set_num_threads or in the variable MLC_NUM_THREADS.

MLC0380 donate, static or args of mlc.compile do not fit the function.
example python:
    import mlc
    mlc.compile(lambda x: x, donate="y")
fix: name parameters that the function has, each in one of the lists.

MLC0381 An argument is a container where one array is specified.
example python:
    import mlc
    mlc.compile(lambda x: x["a"], args=[mlc.spec(3)])({"a": mlc.zeros(3)})
fix: specify a container of the same structure.

MLC0382 A state does not fit the module that should take it.
example text:
    error[MLC0382]: the state does not fit the module: missing weight
fix: load a state that was saved from a module of the same structure.

MLC0383 An optimiser's setting is out of range.
example python:
    import mlc
    mlc.optim.SGD(0.1, nesterov=True)
fix: the message says which values make sense.

MLC0384 A buffer of a module is assigned where the new value would be lost.
A recorded function hands on what becomes of the modules among its arguments. A module that it reaches by itself stays
as it was when the function was recorded.
example python:
    import mlc
    model = mlc.nn.Dropout(0.5)
    mlc.compile(lambda x: model(x))(mlc.ones(3))
fix: pass the module as an argument, or call its eval() if it is not in training.

MLC0385 A module holds no module of this name.
example python:
    import mlc
    mlc.nn.Sequential(mlc.nn.ReLU()).get_submodule("1")
fix: the message lists the names there are.

MLC0386 This is no name for a part of a module.
example python:
    import mlc
    mlc.nn.ModuleDict({"forward": mlc.nn.ReLU()})
fix: use a name that is not empty, has no dot, and is not that of an attribute or method.

MLC0400 An axis of vmap does not fit what it is given for.
example python:
    import mlc
    mlc.vmap(lambda x, w: x @ w)(mlc.ones(5, 3), 2.0)
fix: in_axes and out_axes give an axis, or None, for each tensor; containers of axes are like those they are about.

MLC0401 Mapped axes have different sizes.
example python:
    import mlc
    mlc.vmap(lambda x, y: x + y)(mlc.ones(5, 3), mlc.ones(4, 3))
fix: map axes of one size, and give None in in_axes to what is the same for all.

MLC0405 A function that is to bring its own derivative has no rule.
example python:
    import mlc
    f = mlc.custom_vjp(lambda x: (x * x).sum())
    mlc.grad(f)(mlc.ones(3))
fix: f.defvjp(forward, backward) for mlc.custom_vjp, f.defjvp(rule) for mlc.custom_jvp.

MLC0406 A rule for a derivative does not return what it has to, or not what the function returns.
example python:
    import mlc
    f = mlc.custom_vjp(lambda x: (x * x).sum())
    f.defvjp(lambda x: (x, x), lambda x, ct: (2 * x * ct,))
    mlc.grad(f)(mlc.ones(3))
fix: forward returns (the function's result, residuals), a rule for tangents (the function's result, its tangent).

MLC0407 A function with a rule for its derivative has parameters that only keywords fill.
example python:
    import mlc
    def scaled(x, *, by): return (x * by).sum()
    f = mlc.custom_vjp(scaled)
    mlc.grad(lambda x: f(x, by=2.0))(mlc.ones(3))
fix: make them positional; the rule gets one cotangent or tangent for each.

MLC0408 What Python does depends on a size that is a symbol.
example python:
    import mlc
    mlc.lower(lambda x: x.sum() if x.shape[0] > 3 else x.mean(), args=[mlc.spec("B")])
fix: compile for sizes that are numbers, or write what holds for all sizes.

MLC0686 The program raises an error where a size is a symbol.
The function is then compiled for one size; the report of the compiled function says so, and an error that there is for
numbers too is raised as it is.
example text:
    model.py:4:12: error[MLC0686]: TypeError: an integer is required
fix: nothing has to be done; compute with sizes as numbers (dynamic=False), or with tensors.

MLC0409 The memory is asked for of code that there is not.
example python:
    import mlc
    f = mlc.compile(lambda x: x * 2, args=[mlc.spec("B")])
    f.compiled.peak_bytes(N=3)
fix: give a number for each symbol of the specification, and for no other.

MLC0420 A product of arrays of different float types.
Elementwise functions let the wider type win. Products of matrices do not, as in PyTorch: one batch of float64, which
is what numpy makes unless told otherwise, would turn all the activations of a float32 model into float64.
example python:
    import mlc, numpy as np
    mlc.nn.Linear(3, 2)(np.ones((1, 3)))
fix: make the data float32, as in x.astype(np.float32), or bring the model to float64 with model.double().

MLC0421 An argument is not of the kind that the parameter takes.
example python:
    import mlc
    mlc.nn.functional.hardshrink(mlc.ones(3), None)
fix: pass what the message expects.

MLC0422 A function of numpy refuses the elements of tensors.
numpy's own functions work on tensors: those that mlc has too are mlc's, the others run on the elements.
example python:
    import mlc, numpy as np
    a = np.zeros(3, np.float32)
    a += mlc.ones(2)
fix: the message is numpy's.
'''
