"""Codes of code generation, linking, loading and defects."""

TEXT = r'''
MLC0500 Code generation failed, in a way that has no code of its own.
The fallback of the backends.
example text:
    error[MLC0500]: ...
fix: the message says what failed.

MLC0451 A compilation needs more memory than there is.
A pass ran out of it, or LLVM would: it ends the process where it gets none, so that is found out before.
example text:
    error[MLC0451]: LLVM needs about 4160 MB to compile 67108864 characters of LLVM IR, but only 1800 MB are free
fix: put repeated layers into functions or loops, large constants into arguments, or raise the limit.

MLC0452 LLVM's library cannot be loaded.
It comes with llvmlite, and takes some 150 MB of addresses.
example text:
    error[MLC0452]: LLVM cannot be loaded: Could not find/load shared object file 'libllvmlite.so'
fix: install llvmlite again, or raise the limit on memory (ulimit -v).

MLC0501 There is no such target.
example shell:
    mlc info --target pentium
fix: use host, x86-64-v2, x86-64-v3 or x86-64-v4.

MLC0502 This machine cannot run native code of mlc.
example text:
    error[MLC0502]: no native code for arm64 on darwin: only x86-64 Linux so far
fix: mlc run --exec=interp works everywhere; --target x86-64-v3 compiles for another machine.

MLC0685 The frontend has been given no compiler.
mlc.api hands it over when it is imported, and any public name of mlc imports that.
example text:
    error[MLC0685]: the frontend has been given no compiler
fix: import mlc.api before the modules of mlc.frontend are used, or hand over a compiler with mlc.frontend.compiler.use.

MLC0510 LLVM text nests too deeply.
LLVM's reader would overflow its stack and take the process with it.
example python:
    from mlc.backends.object_code import check_nesting
    check_nesting("{" * 20000)
fix: this text was not made by mlc; it is not read.

MLC0511 LLVM refuses the text that was made for it.
example python:
    from mlc.backends.object_code import compile_object
    from mlc.backends.cpu.targets import host
    compile_object("define nonsense", host())
fix: report it, with the module at the llvm level (mlc compile --emit=llvm).

MLC0512 LLVM cannot generate code for the target.
example python:
    from mlc.backends.object_code import compile_object
    from mlc.backends.cpu.targets import host
    compile_object("", host(), opt_level=9)
fix: choose another --target, or an --opt-level from 0 to 3.

MLC0520 An object file is damaged.
example python:
    from mlc.backends.link import link
    link(b"not an object", [])
fix: compile it again.

MLC0521 An object file has something that the linker does not know.
example text:
    error[MLC0521]: cannot link: relocation type 5
fix: report it, with the object (mlc compile --emit=obj).

MLC0522 Compiled code uses a symbol that it may not import.
Compiled code stands alone but for a few functions of the C library (mlc info lists them).
example text:
    error[MLC0522]: the code uses external symbol 'expf', which it may not import
fix: report it; the operation should have been expanded.

MLC0523 A function that should be exported is not in the object.
example text:
    error[MLC0523]: cannot export 'f_entry': the object has no such public definition
fix: report it, with the module at the llvm level.

MLC0524 Two objects define the same name.
example python:
    from mlc.backends.link import link
    from mlc.backends.object_code import compile_object
    from mlc.backends.cpu.targets import host
    obj = compile_object("@twice = global i32 1", host())
    link([obj, obj], ["twice"])
fix: report it, with the module at the llvm level.

MLC0531 The system refuses to load a library.
example python:
    from mlc.backends.load import load
    load(b"not a library")
fix: the message is the system's; a library for another machine has to be compiled for this one.

MLC0532 A library does not export a function.
example text:
    error[MLC0532]: the library exports no 'f_entry'
fix: compile it again with this version of mlc.

MLC0550 An operation or type cannot be written as LLVM IR.
example text:
    error[MLC0550]: arith.addf cannot be written as LLVM IR
fix: run the pipeline down to the llvm level first; only its dialect is written.

MLC0560 The interface of a compiled function is ill-formed.
example python:
    from mlc.ir.abi import Interface
    from mlc.ir.types import FunctionType, f32
    Interface("f", FunctionType((f32,), ()))
fix: entries take and give tensors; keep `interface`, `symbols` and `aliases` in step when you edit a dump.

MLC0561 Compiled code reports an error that its interface does not list.
example text:
    error[MLC0561]: f reports error 3 of 2
fix: keep `error_sites` when you edit a dump; if you did not, report it.

MLC0562 This machine cannot run code made for that target.
example text:
    error[MLC0562]: this machine cannot run code made for x86-64-v4
fix: compile with --target host.

MLC0563 A compiled function returned a status that means nothing.
example text:
    error[MLC0563]: f returned status 7
fix: report it, with the module.

MLC0570 This cannot be saved.
A saved function takes and returns arrays in lists, tuples and dicts. What is no array must be a number, a string, a
bool or None, because nothing else can be made again without running code of the model.
example python:
    import mlc
    mlc.save(lambda x: x, "f.mlc")
fix: pass what mlc.compile returns, after a call or with args=[...], and keep objects out of its arguments and results.

MLC0571 A file is no saved model, or a damaged one.
Machine code with a wrong bit gives wrong numbers without a word, so a file is checked whole before any of it is used.
example python:
    import mlc
    mlc.load(__file__)
fix: save it again with mlc.save, or copy it again.

MLC0572 A saved function has no code for such arguments.
example python:
    import os, tempfile
    import mlc, numpy as np
    path = os.path.join(tempfile.mkdtemp(), "f.mlc")
    mlc.save(mlc.compile(lambda xs: xs[0] + xs[1]), path, args=[[np.ones(2), np.ones(2)]])
    mlc.load(path)(np.ones(2))
fix: call it as it was saved; the notes list what it was saved for.

MLC0573 A file has a name under which Python cannot import it.
The module that is imported is called as its file is, up to the first dot.
example python:
    import mlc
    @mlc.compile
    def double(x: mlc.spec("N")):
        return x + x
    mlc.extension.write("my-net.so", double)
fix: use letters, digits and _ alone, as in my_net.so.

MLC0574 A function cannot be part of a module that is imported.
Such a module has nothing of mlc at hand. Arguments are arrays in dicts, lists and tuples, results may hold plain values
besides, and whatever a call changes must come back as a result.
example python:
    import mlc
    @mlc.compile
    def scale(x: mlc.spec("N"), how="twice"):
        return "nothing"
    mlc.extension.write("net.so", scale)
fix: pass and return arrays; leave what is no array to defaults.

MLC0900 A defect of mlc.
Something failed that no input should make fail. The message has a line that replays it.
example text:
    error[MLC0900]: pass fuse failed: AssertionError
fix: report it, with the file that was left and the line that replays it.

MLC0901 A pass changes the answer.
mlc run --check interprets the program after every pass. Above fix_numerics results agree within the tolerance, below it
to the bit.
example text:
    error[MLC0901]: pass canonicalize changes the answer of @main: result 0 is 2.0 in place of 1.0 at [0]
fix: report it, with the file that was left; the note names the rule, and canonicalize{limit=N} stops before it.

MLC0902 Native code gives other results than the interpreter, or writes outside of its memory.
Where the number of threads or the width of vectors makes the difference, the message says which.
example text:
    error[MLC0902]: native code of @main differs from its meaning: result 0 is 2.0 in place of 1.0 at [0]
    error[MLC0902]: native code of @main with 256-bit vectors and 2 threads differs from its meaning: ...
    error[MLC0902]: native code of @main with 256-bit vectors and 1 thread leaves its memory: byte 0 behind result 0 ...
fix: report it, with the file that was left.

MLC0903 A compiled function gives something else than the same function run as plain Python, op by op.
example text:
    error[MLC0903]: compiled step is not what Python gives: result[0] is 8.0 in place of 20.0 at [0] (3 of 3 differ)
fix: report it, with the program; the note names the first line whose value differs, where one does.

MLC0904 Two modules that differ have one key, under which the code of both would be kept.
example text:
    error[MLC0904]: code of another function would be taken for @main at model.py:7:1: the two modules differ, and have
    one key
fix: report it, with the program.

MLC0905 Native code ends the process, or does not come to an end, while `mlc run --check` runs it.
It is run in a process of its own, also beside pages of memory that may not be read.
example text:
    error[MLC0905]: native code of @main with 256-bit vectors and 2 threads ends the process by SIGSEGV
fix: report it, with the file that was left.

MLC0660 A pass ends with an error of its own while `mlc run --check` runs it.
example text:
    error[MLC0660]: pass fuse fails on @main: AttributeError: 'NoneType' object has no attribute 'type'
fix: report it, with the file that was left; the note names the rewrite rule that was at work, where one was.

MLC0661 The two sides of a rewrite differ.
A rule has to hold for signed zeros, infinities, NaN and the ends of a type, whether or not the program that is checked
has any.
example text:
    error[MLC0661]: pass canonicalize changes the answer of @main: -0.0 in place of 0.0 at [1] where an operation is
    rewritten
fix: report it, with the file that was left; the note names the rule.

MLC0662 A derivative is not what differences of the function give, in float64 at the program's own arguments.
example text:
    error[MLC0662]: pass grad: the vjp of tensor.cos gives operand 0 0.84 along a direction in which differences give
    -0.84
fix: `mlc ops NAME` says where the rule is. If it is one of mlc's, report it, with the file that was left. A function
that is to have another derivative gets it by custom_vjp.

MLC0663 What decompose or fix_numerics makes of an operation is not what it means.
Each is tried by itself, on numbers of all sizes: a composite has to agree with its meaning within rounding, an
elementary function with the true value as closely as dialects/tensor/ACCURACY.md says.
example text:
    error[MLC0663]: pass decompose: tensor.softmax becomes what gives nan in place of 0.0 at [0, 1]
    error[MLC0663]: pass fix_numerics: tensor.tanh of 0.25 becomes 0.2449188 in place of 0.2449187, 10 units of the
    last place off; 0.87 are promised
fix: `mlc ops NAME` says where the operation is defined. If it is one of mlc's, report it, with the file that was left.

MLC0670 A derivative differs from what differences of the function give.
example python:
    import mlc, numpy as np
    half = mlc.custom_vjp(lambda x: x * x)
    half.defvjp(lambda x: (half(x), x), lambda x, ct: (x * ct,))
    mlc.gradcheck(half, np.ones(2))
fix: mend the rule, or choose points that are no kinks: there the two need not agree.

MLC0671 gradcheck is given nothing that has a derivative.
example python:
    import mlc, numpy as np
    mlc.gradcheck(lambda n: n * 2, np.arange(3))
fix: pass and return arrays of floats; they are converted to float64.

MLC0672 An operation makes a NaN or an infinity of finite numbers, within mlc.detect_anomaly.
example python:
    import mlc
    with mlc.detect_anomaly():
        mlc.log(mlc.zeros(2))
fix: the line is that of the operation, the notes tell the ranges of its operands.
'''
