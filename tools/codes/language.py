"""Error codes of programs in the text language."""

TEXT = r'''
MLC0620 A line has a syntax error.
Each line is parsed by itself, so that one mistake does not hide those on later lines.
example mlc:
    def f(x: f32[N] = x + 1
fix: the message says what was expected at the caret.

MLC0621 A program exceeds a limit on nesting or size.
Program files may come from untrusted sources: what no real program needs is rejected before it costs time and memory.
example mlc:
    def f(x: f32) -> f32:
        unroll for i in 0..1000000:
            x = x + 1
        return x
fix: split the expression into named parts; for a loop, leave out unroll.

MLC0622 A name is not defined.
example mlc:
    def f(x: f32[N]) = sotfmax(x, dim=0)
fix: correct the name, define it above its use, or make it a parameter.

MLC0623 A variable may be unassigned here.
After an if on tensors, a variable has a value only if both branches assign it or it had one before. A variable that is
first assigned in a loop has a value only within the loop.
example mlc:
    def f(x: f32) -> f32:
        if x > 0:
            y = x
        return y
fix: assign the variable before the branch or loop.

MLC0624 A value has no such attribute.
example mlc:
    def f(x: f32[N]) = x.length
fix: call a library function, as x.sum() or sum(x), or use one of T, mT, shape, ndim and dtype.

MLC0625 The called value is not a function.
example mlc:
    def f(x: f32[N]) = x(1)
fix: index with [ ], multiply with *.

MLC0626 A value does not have its declared type.
example mlc:
    def f(x: f32[N, 3]) = sum(x)
    def g(x: f32[4, 2]) = f(x)
fix: change the value or the declared type; cast(x, f64) changes the element type.

MLC0627 A call does not match the parameters of the function or model.
example mlc:
    def f(x: f32, y: f32) = x + y
    def g(x: f32) = f(x)
fix: pass exactly one value for each parameter that has no default.

MLC0628 A function is recursive, or a model contains itself.
All calls are inlined, so recursion would not end.
example mlc:
    def f(x: f32) -> f32 = f(x - 1)
fix: use a for or while loop.

MLC0629 A function of the library does not take these arguments.
example text:
    error[MLC0629]: f does not take (3, f32[N])
fix: see the documentation of the mlc function of this name.

MLC0630 Compile-time arithmetic fails: division by zero, overflow, or an undefined result.
example mlc:
    n = 1 / 0
fix: change the numbers; integers have 64 bits.

MLC0631 A value that must be a compile-time constant is not one.
Sizes, the bounds of unrolled loops and the indices of lists must be known when the program is compiled.
example mlc:
    def f(x: f32[N], n: i64):
        y = 0
        unroll for i in 0..n:
            y = y + x[i]
        return y
fix: use a number or a size, or leave unroll out.

MLC0632 A for loop cannot iterate over this value.
example mlc:
    def f(x: f32) -> f32:
        for y in x:
            x = y
        return x
fix: iterate over a range first..last, the rows of a tensor, a list, or zip of these.

MLC0633 An assignment has more or fewer names than values.
example mlc:
    def f(x: f32):
        a, b = x, x, x
        return a
fix: give one name per value.

MLC0634 An operator is not defined for these operands.
example mlc:
    def f(x: f32) = x + "1"
fix: use tensors, numbers, or models and gradients of equal structure.

MLC0635 The index of a tuple or list is out of range.
example mlc:
    def f(x: f32) = (x, x)[2]
fix: count from 0, or backwards from -1.

MLC0636 The value of an expression is not used.
example mlc:
    def f(x: f32) -> f32:
        x + 1
        return x
fix: return it, or assign it to a name.

MLC0637 An expression is not a valid size.
example mlc:
    def f(x: f32[2.5]) = x
fix: a size is a number of at least 0, a name, or arithmetic of them, such as f32[2 * B].

MLC0638 An expression is not a type.
example mlc:
    def f(x: float32[N]) = x
fix: a type is f32[sizes] or another element type with sizes, a model, (type, type), or like value.

MLC0639 A function's result does not have its declared type.
example mlc:
    def f(x: f32[N]) -> f32 = x
fix: change the result or the declared type.

MLC0640 A declaration is not allowed here.
Models declare parameters, with their initial values; functions assign values to names.
example mlc:
    model Net(n):
        w: f32[n]
fix: write name: type ~ distribution or name: type = value in a model, name = value in a function.

MLC0641 An assertion does not hold.
example mlc:
    model Heads(d, n):
        assert d % n == 0, "the heads share the width equally"
    def f(net: Heads(10, 3), x: f32) = x
fix: use numbers or sizes that satisfy the assertion.

MLC0642 A yield is outside of a loop that collects its values.
example mlc:
    def f(x: f32[N]):
        for y in x:
            yield y
        return x
fix: write `results = for y in x:`, with the yield as the last statement of its body.

MLC0643 A line is not allowed in this block.
A file contains imports, definitions and bindings; a model, declarations and functions; a function, statements.
example mlc:
    def f(x: f32):
        def g(y: f32) = y
        return g(x)
fix: move it to a block that allows it; for a function within a function, write g = y => value.

MLC0644 A function returns on some control-flow paths only, or from within a loop on tensors.
example mlc:
    def f(x: f32):
        while x > 1:
            return x
        return x
fix: return at the end of both branches of an if, and after a loop.

MLC0645 A file cannot be read or imported.
example mlc:
    import "missing.mlc"
fix: give the path of a .mlc file, relative to the importing file; imports must not be circular.

MLC0646 A name is defined twice.
example mlc:
    def f(x: f32) = x
    def f(x: f32) = x + 1
fix: rename one of the two.

MLC0647 A distribution is unknown.
example mlc:
    model Net(n):
        w: f32[n] ~ gauss(0, 1)
fix: use one that the message lists; to give a value instead of a distribution, write = in place of ~.

MLC0650 A name begins with two underscores.
Python reserves such names: it calls the methods implicitly when it prints, copies or collects an object.
example mlc:
    model Net(n):
        def __call__(x: f32[n]) = x
fix: choose another name; a model is called by its method forward.
'''
