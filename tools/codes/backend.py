"""Error codes of code generation, linking, loading and defects."""

TEXT = r'''
MLC0500 Code generation failed in a way that has no code of its own.
This is the fallback of the backends.
example text:
    error[MLC0500]: ...
fix: the message says what failed.

MLC0451 A compilation needs more memory than is available.
A pass ran out of memory, or LLVM would. LLVM aborts the process when an allocation fails, so its needs are estimated
before it runs.
example text:
    error[MLC0451]: LLVM needs about 4160 MB to compile 67108864 characters of LLVM IR, but only 1800 MB are free
fix: move repeated layers into functions or loops, pass large constants as arguments, or raise the limit.

MLC0452 LLVM's library cannot be loaded.
It is part of llvmlite, and needs about 150 MB of address space.
example text:
    error[MLC0452]: LLVM cannot be loaded: Could not find/load shared object file 'libllvmlite.so'
fix: reinstall llvmlite, or raise the limit on memory (ulimit -v).

MLC0501 The target is unknown.
example shell:
    mlc info --target pentium
fix: use host, x86-64-v2, x86-64-v3 or x86-64-v4.

MLC0502 mlc has no native code for this kind of machine.
example text:
    error[MLC0502]: no native code for arm64 on darwin: only x86-64 Linux so far
fix: mlc run --exec=interp works everywhere; --target x86-64-v3 compiles for another machine.

MLC0685 No compiler is registered with the frontend.
Importing mlc.api registers it, and using any public name of mlc imports mlc.api.
example text:
    error[MLC0685]: the frontend has been given no compiler
fix: import mlc.api before using the modules of mlc.frontend, or register a compiler with mlc.frontend.compiler.use.

MLC0510 LLVM text nests too deeply.
LLVM's parser would overflow its stack and crash the process.
example python:
    from mlc.backends.object_code import check_nesting
    check_nesting("{" * 20000)
fix: mlc does not generate such text; reduce the nesting of yours.

MLC0511 LLVM rejects the generated LLVM IR.
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

MLC0520 An object file is corrupt.
example python:
    from mlc.backends.link import link
    link(b"not an object", [])
fix: compile it again.

MLC0521 An object file uses a feature that the linker does not support.
example text:
    error[MLC0521]: cannot link: relocation type 5
fix: report it, with the object (mlc compile --emit=obj).

MLC0522 Compiled code imports a symbol that is not allowed.
Compiled code may import only a few functions of the C library (mlc info lists them).
example text:
    error[MLC0522]: the code uses external symbol 'expf', which it may not import
fix: report it; the operation should have been expanded to others.

MLC0523 The object does not define a function that should be exported.
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

MLC0531 The operating system refuses to load a library.
example python:
    from mlc.backends.load import load
    load(b"not a library")
fix: see the system's message; a library for another machine has to be compiled again for this one.

MLC0532 A library does not export a function.
example text:
    error[MLC0532]: the library exports no 'f_entry'
fix: compile it again with this version of mlc.

MLC0550 An operation or type cannot be written as LLVM IR.
example text:
    error[MLC0550]: arith.addf cannot be written as LLVM IR
fix: lower the module to the llvm dialect first; only that dialect can be translated.

MLC0560 The interface of a compiled function is ill-formed.
example python:
    from mlc.ir.abi import Interface
    from mlc.ir.types import FunctionType, f32
    Interface("f", FunctionType((f32,), ()))
fix: entries take and return tensors; when you edit a dump, keep `interface`, `symbols` and `aliases` consistent.

MLC0561 Compiled code reports an error that its interface does not list.
example text:
    error[MLC0561]: f reports error 3 of 2
fix: keep `error_sites` when you edit a dump; if you did not edit one, report it.

MLC0562 This machine cannot run code for the target that it was compiled for.
example text:
    error[MLC0562]: this machine cannot run code made for x86-64-v4
fix: compile with --target host.

MLC0563 A compiled function returned an unknown status.
example text:
    error[MLC0563]: f returned status 7
fix: report it, with the module.

MLC0570 A function cannot be saved.
A saved function takes and returns arrays in lists, tuples and dicts. Other leaves must be numbers, strings, bools or
None: restoring any other object would mean running code from the file.
example python:
    import mlc
    mlc.save(lambda x: x, "f.mlc")
fix: save a function that mlc.compile returned, after a call or with args=[...], whose arguments and results contain no
other objects.

MLC0571 A file is not a saved model, or is corrupt.
A flipped bit in machine code could silently give wrong numbers, so the checksum of the whole file is verified first.
example python:
    import mlc
    mlc.load(__file__)
fix: save it again with mlc.save, or copy it again.

MLC0572 A saved function was not compiled for these arguments.
example python:
    import os, tempfile
    import mlc, numpy as np
    path = os.path.join(tempfile.mkdtemp(), "f.mlc")
    mlc.save(mlc.compile(lambda xs: xs[0] + xs[1]), path, args=[[np.ones(2), np.ones(2)]])
    mlc.load(path)(np.ones(2))
fix: call it with arguments as when it was saved; the notes list the signatures that it has code for.

MLC0573 The file name of an extension module is not a name that Python can import.
The name of the module is that of its file, up to the first dot.
example python:
    import mlc
    @mlc.compile
    def double(x: mlc.spec("N")):
        return x + x
    mlc.extension.write("my-net.so", double)
fix: use only letters, digits and _, as in my_net.so.

MLC0574 A function cannot be part of an extension module.
Extension modules run without mlc. Arguments are arrays in dicts, lists and tuples, results may also hold plain values,
and all state that a call changes must be returned as a result.
example python:
    import mlc
    @mlc.compile
    def scale(x: mlc.spec("N"), how="twice"):
        return "nothing"
    mlc.extension.write("net.so", scale)
fix: pass and return arrays; give all other parameters defaults.

MLC0900 A defect of mlc.
An internal invariant failed, which no input should be able to cause. The message has a command that reproduces it.
example text:
    error[MLC0900]: pass fuse failed: AssertionError
fix: report it, with the reproducer file and that command.

MLC0901 A pass changes the program's results: a miscompile.
mlc run --check interprets the program after every pass. Results before fix_numerics are compared within a tolerance,
those after it bit for bit.
example text:
    error[MLC0901]: pass canonicalize changes the answer of @main: result 0 is 2.0 in place of 1.0 at [0]
fix: report it, with the file that was written; the note names the rule, and canonicalize{limit=N} stops before it.

MLC0902 Native code gives other results than the interpreter, or writes out of bounds.
If it does so only with some number of threads or vector width, the message says with which.
example text:
    error[MLC0902]: native code of @main differs from its meaning: result 0 is 2.0 in place of 1.0 at [0]
    error[MLC0902]: native code of @main with 256-bit vectors and 2 threads differs from its meaning: ...
    error[MLC0902]: native code of @main with 256-bit vectors and 1 thread leaves its memory: byte 0 behind result 0 ...
fix: report it, with the file that was written.

MLC0903 A compiled function gives other results than the same function run eagerly, op by op.
example text:
    error[MLC0903]: compiled step is not what Python gives: result[0] is 8.0 in place of 20.0 at [0] (3 of 3 differ)
fix: report it, with the program; the note names the first line whose value differs, if there is one.

MLC0904 Two different modules have the same cache key.
The compiled code of one would be used for the other.
example text:
    error[MLC0904]: code of another function would be taken for @main at model.py:7:1: the two modules differ, and have
    one key
fix: report it, with the program.

MLC0905 Native code crashes or hangs while `mlc run --check` runs it.
It runs in a separate process, also with guard pages next to its memory.
example text:
    error[MLC0905]: native code of @main with 256-bit vectors and 2 threads ends the process by SIGSEGV
fix: report it, with the file that was written.

MLC0660 A pass raises an exception while `mlc run --check` runs it.
example text:
    error[MLC0660]: pass fuse fails on @main: AttributeError: 'NoneType' object has no attribute 'type'
fix: report it, with the file that was written; the note names the rewrite rule that was being applied, if any.

MLC0661 A rewrite rule replaces an operation by one that gives other results.
A rule must hold for signed zeros, infinities, NaN and the limits of a type, even if the checked program has no such
values.
example text:
    error[MLC0661]: pass canonicalize changes the answer of @main: -0.0 in place of 0.0 at [1] where an operation is
    rewritten
fix: report it, with the file that was written; the note names the rule.

MLC0662 A derivative rule disagrees with finite differences, in float64 at the program's own arguments.
example text:
    error[MLC0662]: pass grad: the vjp of tensor.cos gives operand 0 0.84 along a direction in which differences give
    -0.84
fix: `mlc ops NAME` says where the rule is. If it is one of mlc's, report it, with the file that was written. To give a
function a different derivative on purpose, use custom_vjp.

MLC0663 The expansion of an operation by decompose or fix_numerics does not match its semantics.
Each operation is tested by itself on numbers of all magnitudes: a composite must agree with its semantics up to
rounding, an elementary function with the true value within the bound in dialects/tensor/ACCURACY.md.
example text:
    error[MLC0663]: pass decompose: tensor.softmax becomes what gives nan in place of 0.0 at [0, 1]
    error[MLC0663]: pass fix_numerics: tensor.tanh of 0.25 becomes 0.2449188 in place of 0.2449187, 10 units of the
    last place off; 0.87 are promised
fix: `mlc ops NAME` says where the operation is defined. If it is one of mlc's, report it, with the file that was
written.

MLC0670 A derivative disagrees with finite differences of the function.
example python:
    import mlc, numpy as np
    half = mlc.custom_vjp(lambda x: x * x)
    half.defvjp(lambda x: (half(x), x), lambda x, ct: (x * ct,))
    mlc.gradcheck(half, np.ones(2))
fix: correct the rule, or choose points where the function is differentiable.

MLC0671 gradcheck is called without differentiable arguments or results.
example python:
    import mlc, numpy as np
    mlc.gradcheck(lambda n: n * 2, np.arange(3))
fix: pass and return arrays of floats; they are converted to float64.

MLC0672 Within mlc.detect_anomaly, an operation produced a NaN or an infinity from finite operands.
example python:
    import mlc
    with mlc.detect_anomaly():
        mlc.log(mlc.zeros(2))
fix: the location is that of the operation, and the notes give the ranges of its operands.
'''
