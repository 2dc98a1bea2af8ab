"""Codes of random generators, and of what goes with PyTorch's basic names."""

TEXT = '''
MLC0716 Numbers are drawn from a generator while a function is recorded.
Each call of a compiled function, and of one that mlc.grad or the like differentiates, draws anew. In loops and branches
on tensors numbers from a generator would be constants of the recording; in a function that mlc.vmap maps they would be
the same for all examples, unless randomness="same" says so.
example python:
    import mlc
    mlc.vmap(lambda x: x * mlc.randn(3))(mlc.ones(2, 3))
fix: pass a key as an argument and draw with mlc.random, or draw outside of the function and pass the numbers.

MLC0717 A tensor is no state of a random generator.
example python:
    import mlc
    mlc.set_rng_state(mlc.zeros(3))
fix: pass what mlc.get_rng_state, or get_state of an mlc.Generator, returned.

MLC0718 Initial values are written into a tensor while a function is recorded.
example python:
    import mlc
    mlc.compile(lambda x: mlc.nn.init.zeros_(x))(mlc.ones(3))
fix: initialize parameters outside of the function, or make new tensors, as mlc.nn.init.zeros(shape) does.

MLC0719 Another default dtype than float32 is asked for.
Kernels are compiled for the dtypes of their operands and for one default dtype, that of Python floats and of integers
that are divided.
example python:
    import mlc
    mlc.set_default_dtype(mlc.float64)
fix: say the dtype where tensors are made, as in mlc.zeros(3, dtype=mlc.float64), and convert modules, as in
     model.double().

MLC0761 A parameter of a distribution, or a value that its probability is asked for, is out of range.
example python:
    import mlc
    mlc.distributions.Normal(0.0, -1.0)
fix: pass parameters and values that the class documents; validate_args=False turns the checks off.

MLC0762 A distribution does not have what is asked of it.
Samples of a discrete distribution, for one, have no gradient with respect to its parameters.
example python:
    import mlc
    mlc.distributions.Bernoulli(0.5).rsample()
fix: for a discrete distribution, call sample, and use log_prob of the sample in the loss.

MLC0763 A distribution is given neither or both of probs and logits, or weights without a dimension.
example python:
    import mlc
    mlc.distributions.Categorical()
fix: pass one of them, whose last dimension numbers the categories.
'''
