"""Error codes of control flow: loops and conditions on tensors, as functions and as Python."""

TEXT = '''
MLC0600 A value computed inside of a loop or branch is used outside of it.
A branch may not run, and a loop runs often: what they compute leaves them only as their result.
example python:
    import mlc
    @mlc.compile
    def f(x):
        kept = []
        mlc.cond(x > 0, lambda: kept.append(x + 1), lambda: None)
        return kept[0]
    f(mlc.tensor(1.0))
fix: return it from the loop or branch, or carry it through the loop.

MLC0601 What a loop carries changes its structure, shape or element type.
The body is compiled once for all iterations. A Python number that begins takes on the type of what the body gives.
example python:
    import mlc
    mlc.fori_loop(0, 3, lambda i, x: mlc.stack([x, x]), mlc.tensor(1.0))
fix: begin with a value of the type that the body gives, or cast it there.

MLC0602 A condition is a tensor of more than one element.
example python:
    import mlc
    @mlc.compile
    def f(x):
        if x > 0:
            x = x + 1
        return x
    f(mlc.zeros(3))
fix: say which elements decide with mlc.all or mlc.any, or choose for each with mlc.where.

MLC0603 Two branches give values of different structure, shape or element type.
example python:
    import mlc
    mlc.cond(mlc.tensor(True), lambda: mlc.zeros(3), lambda: mlc.zeros(2))
fix: give the same from both; Python numbers take on the type of what they meet.

MLC0604 The function of mlc.scan does not give a pair.
example python:
    import mlc
    mlc.scan(lambda c, x: c + x, 0.0, mlc.ones(3))
fix: return (carry, y), with None for y if there is nothing to collect.

MLC0605 A bound of a loop is no integer.
example python:
    import mlc
    mlc.fori_loop(0, mlc.tensor([1, 2]), lambda i, x: x + i, 0)
fix: use integers, or integer tensors of one element.

MLC0606 What a loop goes through has no length, or several.
example python:
    import mlc
    mlc.scan(lambda c, x: (c, x), 0.0, (mlc.zeros(3), mlc.zeros(2)))
fix: pass arrays with as many rows each; without arrays, pass length.

MLC0607 A variable may have no value.
A loop on tensors may run no iteration, and of two branches only one runs.
example python:
    import mlc
    @mlc.compile
    def f(x):
        if x > 0:
            y = x
        return y
    f(mlc.tensor(1.0))
fix: give the variable a value before the loop or in both branches.

MLC0608 Python's state changes in a loop or branch on tensors.
The loop or branch is recorded once, so a list would grow by one element, and print would print once.
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
fix: carry tensors in variables, write rows with mlc.dynamic_update_slice, or use mlc.scan.

MLC0609 Python goes through something whose length a tensor says.
example python:
    import mlc
    @mlc.compile
    def f(n):
        return [i * n for i in range(n)]
    f(mlc.tensor(3))
fix: write a for loop, or use mlc.scan or mlc.map.

MLC0610 A loop or condition on tensors stands within try.
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
fix: move it out of the try, or choose between values with mlc.where.

MLC0611 A raise depends on a tensor.
example python:
    import mlc
    @mlc.compile
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x
    f(mlc.tensor(1.0))
fix: use assert, which compiled code checks.

MLC0612 An assert does not hold.
The error is an AssertionError as well.
example python:
    import mlc
    @mlc.compile
    def f(x):
        assert x > 0, "x is not positive"
        return x
    f(mlc.tensor(-1.0))
fix: the message and the line are those of the assert.

MLC0613 Functions call each other until a tensor says stop.
While such functions are recorded, nothing ends them.
example python:
    import mlc
    @mlc.compile
    def factorial(n):
        return n if n <= 1 else n * factorial(n - 1)
    factorial(mlc.tensor(5))
fix: write a loop.

MLC0614 A function that is transformed returns a value of a data-dependent size.
mlc.grad, mlc.vjp and mlc.jvp take such functions; rules of one's own and vmap need sizes that are known.
example python:
    import mlc
    mlc.vmap(lambda x, y: (x * 2, y[y > 0]), in_axes=(0, None), out_axes=(0, None))(mlc.ones(3), mlc.ones(2))
fix: reduce it in the function, or keep the size and choose by the mask with mlc.where.

MLC0615 A function that is compiled changes something that was there before: a global, an attribute, a list.
It is recorded once and then called often; in plain Python every call would change it.
example python:
    import mlc
    class Counter(mlc.nn.Module):
        def __init__(self):
            self.calls = 0
        def forward(self, x):
            self.calls += 1
            return x
    mlc.compile(Counter())(mlc.ones(3))
fix: return the new value, or make it a buffer of a module that is passed: register_buffer.

MLC0616 A function that is compiled asks for the time, for a random number or for input, or returns an iterator.
It is recorded once, and every call would get what that moment gave.
example python:
    import time
    import mlc
    mlc.compile(lambda x: x + time.time())(mlc.ones(3))
fix: call it outside and pass what it gives; for random numbers pass a key to the functions of mlc.random.
'''
