"""Error codes of control flow: loops and conditions on tensors, as functions or Python statements."""

TEXT = '''
MLC0600 A value computed inside a loop or branch is used outside of it.
A branch may not run, and a loop body may run many times, so their values are visible outside only as results.
example python:
    import mlc
    @mlc.compile
    def f(x):
        kept = []
        mlc.cond(x > 0, lambda: kept.append(x + 1), lambda: None)
        return kept[0]
    f(mlc.tensor(1.0))
fix: return it from the loop or branch, or carry it through the loop.

MLC0601 A loop-carried value changes its structure, shape or element type.
The body is compiled once for all iterations. An initial value that is a Python number is promoted to the type that the
body returns.
example python:
    import mlc
    mlc.fori_loop(0, 3, lambda i, x: mlc.stack([x, x]), mlc.tensor(1.0))
fix: use an initial value of the type that the body returns, or cast in the body.

MLC0602 A condition is a tensor of more than one element.
example python:
    import mlc
    @mlc.compile
    def f(x):
        if x > 0:
            x = x + 1
        return x
    f(mlc.zeros(3))
fix: reduce it with mlc.all or mlc.any, or select elementwise with mlc.where.

MLC0603 The results of two branches differ in structure, shape or element type.
example python:
    import mlc
    mlc.cond(mlc.tensor(True), lambda: mlc.zeros(3), lambda: mlc.zeros(2))
fix: return the same types from both; a Python number takes on the type of the other branch's tensor.

MLC0604 The function passed to mlc.scan does not return a pair.
example python:
    import mlc
    mlc.scan(lambda c, x: c + x, 0.0, mlc.ones(3))
fix: return (carry, y), with None for y if there is nothing to collect.

MLC0605 A bound of a loop is not an integer.
example python:
    import mlc
    mlc.fori_loop(0, mlc.tensor([1, 2]), lambda i, x: x + i, 0)
fix: use integers, or integer tensors of one element.

MLC0606 The arrays that a loop iterates over have different lengths, or none is given.
example python:
    import mlc
    mlc.scan(lambda c, x: (c, x), 0.0, (mlc.zeros(3), mlc.zeros(2)))
fix: pass arrays with equal numbers of rows; without arrays, pass length.

MLC0607 A variable may be unassigned.
A loop on tensors may run no iteration, and only one of two branches runs.
example python:
    import mlc
    @mlc.compile
    def f(x):
        if x > 0:
            y = x
        return y
    f(mlc.tensor(1.0))
fix: assign the variable before the loop, or in both branches.

MLC0608 A loop or branch on tensors has a Python side effect.
Its body is recorded only once, so a list would grow by one element, and print would print once.
example python:
    import mlc
    @mlc.compile
    def f(x):
        seen = []
        while x < 10:
            seen.append(x)
            x = x * 2
        return seen
    f(mlc.tensor(1.0))
fix: assign to variables, which are loop-carried, write rows with mlc.dynamic_update_slice, or use mlc.scan.

MLC0609 A Python iteration has a length that is the value of a tensor.
example python:
    import mlc
    @mlc.compile
    def f(n):
        return [i * n for i in range(n)]
    f(mlc.tensor(3))
fix: write a for statement, or use mlc.scan or mlc.map.

MLC0610 A loop or condition on tensors is inside a try statement.
example python:
    import mlc
    @mlc.compile
    def f(x):
        try:
            if x > 0:
                x = x + 1
        except ValueError:
            pass
        return x
    f(mlc.tensor(1.0))
fix: move it out of the try, or select between values with mlc.where.

MLC0611 A raise statement, or an error of Python, is in a loop or branch that depends on a tensor.
example python:
    import mlc
    @mlc.compile
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x
    f(mlc.tensor(1.0))
fix: use assert, which compiled code checks.

MLC0612 An assertion failed.
The error is also an AssertionError.
example python:
    import mlc
    @mlc.compile
    def f(x):
        assert x > 0, "x is not positive"
        return x
    f(mlc.tensor(-1.0))
fix: the message and the line are those of the assert.

MLC0613 A recursion ends depending on the value of a tensor.
While the functions are recorded, tensors have no values, so the recursion would not end.
example python:
    import mlc
    @mlc.compile
    def factorial(n):
        return n if n <= 1 else n * factorial(n - 1)
    factorial(mlc.tensor(5))
fix: write a loop.

MLC0614 A transformed function returns a value of data-dependent size.
mlc.grad, mlc.vjp and mlc.jvp support such functions; vmap and custom derivative rules do not.
example python:
    import mlc
    mlc.vmap(lambda x, y: (x * 2, y[y > 0]), in_dims=(0, None), out_dims=(0, None))(mlc.ones(3), mlc.ones(2))
fix: reduce it in the function, or keep the size and select by the mask with mlc.where.

MLC0615 A compiled function changes existing Python state: a global, an attribute or a list.
The function is recorded only once, so the state would change once instead of in every call. A buffer of a module may be
assigned, in each call another result of an operation: of the same type, without a history, and where nothing else holds
or returns the tensor that it was before.
example python:
    import mlc
    class Counter(mlc.nn.Module):
        def __init__(self):
            self.calls = 0
        def forward(self, x):
            self.calls += 1
            return x
    mlc.compile(Counter())(mlc.ones(3))
fix: return the new value, or make it a buffer of a module (register_buffer) and change it in place, as by copy_.

MLC0997 A compiled function makes a tensor that was None before the call.
Such a cache is there after the first call, which therefore runs as Python; the next one is compiled, and reads it. This
is an error where there is no call, and where it happens again and again.
example python:
    import mlc
    class Scaled(mlc.nn.Module):
        def __init__(self):
            self.scale = None
        def forward(self, x):
            if self.scale is None:
                self.scale = mlc.arange(3.0).exp()
            return x * self.scale
    model = Scaled()
    mlc.lower(lambda x: model(x), (mlc.ones(3),))
fix: call the function once before, or make the tensor where the object is made.

MLC0616 A compiled function reads the time, a random number or input, or returns an iterator.
The function is recorded only once, so every call would use the values from the recording.
example python:
    import time
    import mlc
    mlc.compile(lambda x: x + time.time())(mlc.ones(3))
fix: compute the value outside and pass it as an argument; for random numbers, pass a key to a function of mlc.random.
'''
