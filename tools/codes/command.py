"""Codes of pipelines and of the mlc command."""

TEXT = r'''
MLC0330 There is no pass of this name.
example shell:
    mlc opt model.mlir -p canonicalise
fix: mlc passes lists them; a pass of your own is named by its module, package.module.

MLC0331 Two passes do not fit: the second does not take the form that the first leaves.
example shell:
    mlc opt model.mlir -p 'bufferize,fix_numerics'
fix: mlc passes shows what each pass takes and gives; put what is missing between them.

MLC0332 A pipeline is not written as one.
example shell:
    mlc opt model.mlir -p 'fuse{'
fix: write PASS{option=value},PASS,...

MLC0333 A pass has no such option.
example shell:
    mlc opt model.mlir -p 'fuse{max=3}'
fix: mlc passes NAME lists the options.

MLC0687 A machine model has no such figure.
Passes that schedule have an option `machine`: the figures that differ from what they take for given.
example shell:
    mlc opt model.mlir -p 'vectorize{machine=vector_bitz:256}'
fix: write FIGURE:NUMBER, with a semicolon between two; the message lists the figures.

MLC0334 There is no such level.
example python:
    import mlc, numpy as np
    mlc.lower(lambda x: x + 1, [np.zeros(3, np.float32)], level="assembly")
fix: the levels are tensor, loop, low and llvm; mlc compile --emit also knows llvm-ir, asm and obj.

MLC0335 A module is already below the requested level.
Passes only go down.
example text:
    error[MLC0335]: the module is at level low already, below loop
fix: start from an earlier dump.

MLC0387 A file holds no arrays, or is damaged.
example shell:
    mlc run model.mlir --inputs model.mlir
fix: write it with numpy.save or numpy.savez; pickled objects are not read.

MLC0388 Nothing tells the types of a function's arguments.
example shell:
    mlc compile model.py:scale
fix: annotate the parameter, x: mlc.spec("B", 16), or give --args 'f32[B,16]'.

MLC0389 A function cannot be called with arrays.
Native code is entered by functions of tensors, or below by those with an `interface`; others run in the interpreter.
example shell:
    mlc run scalars.mlir
fix: mlc run --exec=interp runs it in the interpreter.

MLC0390 There is no such command.
example shell:
    mlc optt model.mlir
fix: mlc --help lists the commands.

MLC0391 The options of a command are wrong.
example shell:
    mlc opt model.mlir --genric
fix: the command's --help lists them, with examples.

MLC0392 A file cannot be used.
example shell:
    mlc run no-such-file.py
fix: check the path and its permissions.

MLC0393 An output cannot be written.
Nothing is left half-written: the old file, if there was one, is as it was.
example shell:
    mlc opt model.mlir -o no-such-folder/out.mlir
fix: check that the folder exists and may be written to.

MLC0394 --run-reproducer is given a file that holds no pipeline.
example shell:
    mlc opt model.mlir --run-reproducer
fix: only files that a crash or mlc run --check left hold one; give the passes with -p.

MLC0395 There is no such operation or dialect.
example shell:
    mlc ops tensor.expp
fix: mlc ops lists them.

MLC0396 There is no such error code.
example shell:
    mlc explain-error MLC9999
fix: mlc explain-error --list shows all.

MLC0397 --args, --sizes or the name of an output file is ill-formed.
example shell:
    mlc run model.mlir --args 'float[3]'
fix: write --args 'f32[4,16],i64[4]', --sizes B=4,N=8 and -o results.npz.

MLC0398 The program itself raised an exception.
mlc was running your Python file; the location is the innermost line of it.
example shell:
    mlc run fails.py
fix: mlc run --debug shows the whole traceback.

MLC0399 There is no such function in the file or module.
example shell:
    mlc compile model.py:predikt
fix: write FILE:FUNCTION with a function that the file defines at its top level.

MLC0453 A check found nothing to check.
mlc run --check compares what a program's compiled functions compute; a program that calls none has not been checked.
example text:
    error[MLC0453]: nothing was checked: the program called no compiled function
fix: call a function that mlc.compile returned, or check one function on random arguments: FILE:FUNCTION.

MLC0454 A file asks for a pass that is no part of mlc.
Passes are modules of Python, which run when they are imported: a file that somebody sent must not choose one.
example text:
    error[MLC0454]: the file asks for the pass mine.swap, which would be imported and run
fix: --allow-pass mine.swap, if that is your own pass; or name the pipeline with -p.

MLC0410 There is no such elementary function, or none whose accuracy is measured.
example shell:
    mlc accuracy expp
fix: mlc accuracy without a name measures all of them.

MLC0411 The accuracy of float64 is asked for, and mpmath is not installed.
True values of float64 need more digits than floats have.
example text:
    mlc accuracy exp --type float64
    error[MLC0411]: mpmath is not installed (No module named 'mpmath'), which float64 is compared with
fix: pip install mpmath, or measure a narrower type with --type.

MLC0680 MLC_CHANGES is ill-formed, or MLC_CHANGES_LOG cannot be written.
It says which optional changes the compiler makes: all, none, the keys of some, or those left out, each with a minus.
example text:
    MLC_CHANGES=canonicalize mlc run model.mlir
    error[MLC0680]: MLC_CHANGES: 'canonicalize' is not a key of a change
fix: give keys that mlc bisect printed or that stand in the file MLC_CHANGES_LOG, separated by commas; or unset it.

MLC0681 It goes wrong without any optional change, too.
So no rewrite and no decision of a pass is to blame, but a lowering, which has to run, or the code generator; the note
says after which pass the answer is first another, as the interpreter has it.
example text:
    mlc bisect model.mlir
    error[MLC0681]: @main: wrong answer, and without any optional change: result 0 is 2.0 in place of 1.0
fix: mlc run --check leaves a file for the pass, which mlc reduce makes smaller.

MLC0682 There is nothing to bisect: with all changes nothing goes wrong.
Native code gives what the interpreter makes of the recorded program, or the command ends with status 0.
example shell:
    mlc bisect model.mlir
fix: mlc run --check compares with plain Python too; put a command that fails after --, or ask for --slow.

MLC0683 The code, or compiling it, is not slower with the changes than without.
The medians of several turns differ by less than --ratio, or the turns do not agree which is slower.
example text:
    mlc bisect model.mlir --slow
    error[MLC0683]: the call is not slower with the changes than without, by 1.2 times and more than it varies
fix: measure on a machine that does nothing else, with larger arguments, or give a lower --ratio.

MLC0684 It does not fail again with the changes that were made when it failed.
Keys name changes of one program. One that draws random constants, or counts time, is another in each run; and what
fails only now and then cannot be bisected.
example text:
    mlc bisect -- python train.py
    error[MLC0684]: it fails with all changes (exit status 1), and not with the 120 that were made then, each by its key
fix: fix the seeds of the program, or bisect one function: mlc bisect train.py:step.
'''
