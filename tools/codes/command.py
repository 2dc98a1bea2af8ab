"""Error codes of pipelines and of the mlc command."""

TEXT = r'''
MLC0330 The pass is unknown.
example shell:
    mlc opt model.mlir -p canonicalise
fix: mlc passes lists them; a pass of your own is named by its module, package.module.

MLC0331 A pass does not accept the form of IR that the previous pass gives.
example shell:
    mlc opt model.mlir -p 'bufferize,fix_numerics'
fix: mlc passes shows the form that each pass takes and gives; add the missing passes between the two.

MLC0332 The text of a pipeline is ill-formed.
example shell:
    mlc opt model.mlir -p 'fuse{'
fix: write PASS{option=value},PASS,...

MLC0333 The option of a pass is unknown, or its value is of another kind.
example shell:
    mlc opt model.mlir -p 'fuse{max=3}'
fix: mlc passes NAME lists the options.

MLC0687 A machine model has no parameter of this name.
The scheduling passes have an option `machine`, which overrides parameters of the machine model.
example shell:
    mlc opt model.mlir -p 'vectorize{machine=vector_bitz:256}'
fix: write NAME:NUMBER, separated by semicolons; the message lists the names.

MLC0334 The level is unknown.
example python:
    import mlc, numpy as np
    mlc.lower(lambda x: x + 1, [np.zeros(3, np.float32)], level="assembly")
fix: the levels are tensor, loop, low and llvm; mlc compile --emit also knows llvm-ir, asm and obj.

MLC0335 A module is already below the requested level.
Passes only lower.
example text:
    error[MLC0335]: the module is at level low already, below loop
fix: start from an earlier dump.

MLC0387 An input file contains no arrays, or is corrupt.
example shell:
    mlc run model.mlir --inputs model.mlir
fix: write it with numpy.save or numpy.savez; pickled objects are not read.

MLC0388 The types of a function's arguments are not specified.
example shell:
    mlc compile model.py:scale
fix: annotate the parameter, x: mlc.spec("B", 16), or give --args 'f32[B,16]'.

MLC0389 A function cannot be called with arrays in native code.
Only functions of tensors, or lowered functions with an `interface`, can; others run in the interpreter.
example shell:
    mlc run scalars.mlir
fix: mlc run --exec=interp runs it in the interpreter.

MLC0390 The command is unknown.
example shell:
    mlc optt model.mlir
fix: mlc --help lists the commands.

MLC0391 The options of a command are invalid.
example shell:
    mlc opt model.mlir --genric
fix: the command's --help lists them, with examples.

MLC0392 A file cannot be read, or is not of a kind that the command accepts.
example shell:
    mlc run no-such-file.py
fix: check the path and its permissions.

MLC0393 A file cannot be written.
Files are replaced atomically, so an existing file is unchanged.
example shell:
    mlc opt model.mlir -o no-such-folder/out.mlir
fix: check that the folder exists and may be written to, and that there is space.

MLC0394 --run-reproducer is given a file that contains no pipeline.
example shell:
    mlc opt model.mlir --run-reproducer
fix: only the files that a crash or mlc run --check writes contain one; for others, give the passes with -p.

MLC0395 The operation or dialect is unknown.
example shell:
    mlc ops tensor.expp
fix: mlc ops lists them.

MLC0396 The error code is unknown.
example shell:
    mlc explain-error MLC9999
fix: mlc explain-error --list shows all codes.

MLC0397 --args, --sizes or the name of an output file is ill-formed, or two sizes contradict each other.
example shell:
    mlc run model.mlir --args 'float[3]'
fix: write --args 'f32[4,16],i64[4]', --sizes B=4,N=8 and -o results.npz.

MLC0398 The program itself raised an exception.
mlc was running your Python file, or importing your own pass; the location is the innermost frame in it.
example shell:
    mlc run fails.py
fix: mlc run --debug shows the whole traceback.

MLC0399 The file or module has no function of this name.
example shell:
    mlc compile model.py:predikt
fix: write FILE:FUNCTION with a function that the file defines at its top level.

MLC0453 mlc run --check or mlc explain found no compiled function in a program.
They are about calls of compiled functions, and the program made none.
example text:
    error[MLC0453]: nothing was checked: the program called no compiled function
fix: call a function that mlc.compile returned, or name one function: FILE:FUNCTION.

MLC0454 A file names a pass that is not part of mlc.
A pass is a Python module, whose code runs when it is imported, so an untrusted file must not be able to choose one.
example text:
    error[MLC0454]: the file asks for the pass mine.swap, which would be imported and run
fix: give --allow-pass mine.swap if that is your own pass, or name the pipeline with -p.

MLC0690 An editor asks for a change or a view that is not possible.
A value cannot have a name that another one has, a name of another file is changed there, and only what has no errors
can be shown at the next level.
example text:
    error[MLC0690]: %y is another value of this function
fix: choose another name, or correct the errors of the file first.

MLC0691 A command needs a package that is not installed.
It is an extra of mlc, since most programs do without it.
example text:
    error[MLC0691]: the language server needs pygls
fix: pip install 'mlc[editor]'.

MLC0692 MLC_LOGS or MLC_LOGS_FORMAT has a value that is unknown.
MLC_LOGS=help lists the logs.
example text:
    error[MLC0692]: MLC_LOGS: there is no log 'recompile'
      help: did you mean recompiles?
fix: write names of logs, separated by commas.

MLC0694 mlc debug does not understand a command, or a name in it stands for nothing.
example text:
    error[MLC0694]: nothing is at tensor.expp
fix: h lists the commands, locals the values, and l the lines around.

MLC0695 mlc.debug.print has a message without a value for each field, or is compiled for something else than a call.
Fields are as of str.format, without attributes and items. Values are shown while a compiled function is called on the
CPU, by the interpreter; code for files and devices has no such operation.
example python:
    import mlc
    mlc.debug.print("x is {x}", y=mlc.ones(3))
fix: give each field its value; remove the line before the function is saved.

MLC0410 The elementary function is unknown, or its accuracy is not measured.
example shell:
    mlc accuracy expp
fix: mlc accuracy without a name measures all functions.

MLC0411 The accuracy in float64 is requested, but mpmath is not installed.
The reference values need more digits than float64 has.
example text:
    mlc accuracy exp --type float64
    error[MLC0411]: mpmath is not installed (No module named 'mpmath'), which float64 is compared with
fix: pip install mpmath, or measure a narrower type with --type.

MLC0680 MLC_CHANGES is ill-formed, or MLC_CHANGES_LOG cannot be written.
MLC_CHANGES selects the optional changes that the compiler makes: all, none, a list of keys, or a list of excluded keys,
each with a minus sign.
example text:
    MLC_CHANGES=canonicalize mlc run model.mlir
    error[MLC0680]: MLC_CHANGES: 'canonicalize' is not a key of a change
fix: give keys that mlc bisect printed, or that the file MLC_CHANGES_LOG contains, separated by commas; or unset it.

MLC0681 The failure also occurs without any optional change.
So the cause is not a rewrite or an optional decision of a pass, but a lowering, which always runs, or the code
generator. The note names the first pass after which the interpreter computes a different result.
example text:
    mlc bisect model.mlir
    error[MLC0681]: @main: wrong answer, and without any optional change: result 0 is 2.0 in place of 1.0
fix: mlc run --check writes a file for the pass, which mlc reduce makes smaller.

MLC0682 There is nothing to bisect: no failure occurs with all changes.
Native code gives the same results as the interpreter on the recorded program, or the command exits with status 0.
example shell:
    mlc bisect model.mlir
fix: mlc run --check compares with plain Python too; to bisect a command that fails, put it after --; to bisect slow
code, give --slow.

MLC0683 The code, or its compilation, is not slower with the changes than without.
The medians of several runs differ by less than --ratio, or the runs do not agree on which is slower.
example text:
    mlc bisect model.mlir --slow
    error[MLC0683]: the call is not slower with the changes than without, by 1.2 times and more than it varies
fix: measure on an idle machine, with larger arguments, or give a lower --ratio.

MLC0684 The failure is not reproduced by the changes that were made when it occurred.
Keys identify the changes of one program. A program that depends on random numbers or the time differs from run to run,
and an intermittent failure cannot be bisected.
example text:
    mlc bisect -- python train.py
    error[MLC0684]: it fails with all changes (exit status 1), and not with the 120 that were made then, each by its key
fix: seed the program's random numbers, or bisect one function: mlc bisect train.py:step.

MLC0930 The pages of the documentation site have warnings.
Sphinx found a reference to a name that there is not, a page in no table of contents, or markup that it cannot read.
example text:
    python -m mlc.tools.site
    error[MLC0930]: the site has 1 warnings
fix: mend what the warnings name, in the docstring or the page that they name.

MLC0932 A cell of a notebook has no function to show.
%mlc shows a function of the notebook, by its name; %%mlc shows the functions of its cell.
example text:
    %mlc scores --emit=loop
    error[MLC0932]: the notebook has no scores
fix: run the cell that defines the function, or define one with def in a cell of %%mlc.

MLC0931 Links of the documentation site lead nowhere.
After the pages are made, each link within the site is followed to its file and to its place there.
example text:
    python -m mlc.tools.site
    error[MLC0931]: 1 links lead nowhere: docs/index.html: ../WALKS.html#step
fix: mend the links in the sources that the pages are made of.
'''
