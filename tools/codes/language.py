"""Codes of programs in the text language."""

TEXT = r'''
MLC0620 A line is not of the language.
Every line is read by itself, so that each mistake is reported once and the lines after it are read too.
example mlc:
    def f(x: f32[N] = x + 1
fix: the message says what was expected at the caret.

MLC0621 A program passes a limit on nesting or size.
Programs come from outside: what no real one needs is refused before time and memory are spent on it.
example mlc:
    def f(x: f32) -> f32:
        unroll for i in 0..1000000:
            x = x + 1
        return x
fix: name parts of an expression on lines of their own; leave unroll out.

MLC0622 A name stands for nothing.
example mlc:
    def f(x: f32[N]) = sotfmax(x, dim=0)
fix: correct the name, define it above, or give it as a parameter.

MLC0623 A name has no value here.
What one branch of an if on tensors assigns has a value after it only if the other branch assigns it too, or if it had
one before; what a loop assigns first has one within the loop only.
example mlc:
    def f(x: f32) -> f32:
        if x > 0:
            y = x
        return y
fix: give the name a value before the branch or loop.

MLC0624 A value has no such attribute.
example mlc:
    def f(x: f32[N]) = x.length
fix: write a function of the library, x.sum() or sum(x), or one of T, mT, shape, ndim and dtype.

MLC0625 What is called is no function.
example mlc:
    def f(x: f32[N]) = x(1)
fix: index with [ ], multiply with *.

MLC0626 A value is not of its declared type.
example mlc:
    def f(x: f32[N, 3]) = sum(x)
    def g(x: f32[4, 2]) = f(x)
fix: change the value or the declared type; cast(x, f64) changes the element type.

MLC0627 A call does not fit the parameters of the function or model.
example mlc:
    def f(x: f32, y: f32) = x + y
    def g(x: f32) = f(x)
fix: give each parameter without a default one value.

MLC0628 A function calls itself, or a model holds itself.
What is compiled is finite: calls are part of their callers.
example mlc:
    def f(x: f32) -> f32 = f(x - 1)
fix: repeat with for or while.

MLC0629 A function of the library does not take these arguments.
example text:
    error[MLC0629]: f does not take (3, f32[N])
fix: the documentation of the function in mlc says what it takes.

MLC0630 Arithmetic on numbers that are known has no result.
example mlc:
    n = 1 / 0
fix: change the numbers; integers are those of 64 bits.

MLC0631 A value must be known while the program is compiled, and is not.
Sizes, the bounds of unrolled loops and the indices of lists decide what is compiled.
example mlc:
    def f(x: f32[N], n: i64):
        y = 0
        unroll for i in 0..n:
            y = y + x[i]
        return y
fix: use a number or a size, or leave unroll out.

MLC0632 A loop has nothing to go through.
example mlc:
    def f(x: f32) -> f32:
        for y in x:
            x = y
        return x
fix: go through a range first..last, the rows of a tensor, a list, or zip of them.

MLC0633 There are more or fewer names than values.
example mlc:
    def f(x: f32):
        a, b = x, x, x
        return a
fix: write as many names as there are values.

MLC0634 An operator is not defined on these values.
example mlc:
    def f(x: f32) = x + "1"
fix: use tensors, numbers, or models and gradients of equal structure.

MLC0635 A tuple or list has no such part.
example mlc:
    def f(x: f32) = (x, x)[2]
fix: count from 0, or from -1 at the end.

MLC0636 Nothing is done with a value.
example mlc:
    def f(x: f32) -> f32:
        x + 1
        return x
fix: return it, or give it a name.

MLC0637 This is no size.
example mlc:
    def f(x: f32[2.5]) = x
fix: a size is a number of at least 0, a name, or arithmetic of them, such as f32[2 * B].

MLC0638 This is no type.
example mlc:
    def f(x: float32[N]) = x
fix: a type is f32[sizes] or another element type with sizes, a model, (type, type), or like value.

MLC0639 A function's result is not of its declared type.
example mlc:
    def f(x: f32[N]) -> f32 = x
fix: change the result or the declared type.

MLC0640 A declaration does not fit its place.
Parameters are declared in models, with what they begin as; functions bind names to values.
example mlc:
    model Net(n):
        w: f32[n]
fix: write name: type ~ distribution or name: type = value in a model, name = value in a function.

MLC0641 An assertion does not hold.
example mlc:
    model Heads(d, n):
        assert d % n == 0, "the heads share the width equally"
    def f(net: Heads(10, 3), x: f32) = x
fix: use other numbers or sizes.

MLC0642 A yield stands where nothing collects it.
example mlc:
    def f(x: f32[N]):
        for y in x:
            yield y
        return x
fix: write results = for y in x: and yield last in its block.

MLC0643 A line stands where it cannot.
A file holds imports, definitions and bindings; a model declarations and functions; a function statements.
example mlc:
    def f(x: f32):
        def g(y: f32) = y
        return g(x)
fix: move it to where it belongs; within functions, write g = y => value.

MLC0644 A function returns on some of its ways only, or out of a loop on tensors.
example mlc:
    def f(x: f32):
        while x > 1:
            return x
        return x
fix: return at the end of both branches of an if, and after loops.

MLC0645 A file cannot be read or imported.
example mlc:
    import "missing.mlc"
fix: give the path from the importing file to a .mlc file; files do not import each other in a circle.

MLC0646 A name is defined twice.
example mlc:
    def f(x: f32) = x
    def f(x: f32) = x + 1
fix: give one of the two another name.

MLC0647 This is no distribution.
example mlc:
    model Net(n):
        w: f32[n] ~ gauss(0, 1)
fix: use one of those that the message lists; for other values write = in place of ~.

MLC0650 A name begins with two underscores.
Such names are Python's: a method of that name would run when an object is printed, copied or collected.
example mlc:
    model Net(n):
        def __call__(x: f32[n]) = x
fix: choose another name; a model is called by its method forward.
'''
