"""Error codes of models in the format ONNX."""

TEXT = r'''
MLC0840 A file, or what is passed in its place, is no valid ONNX model.
It is damaged, a tensor has not the elements that its sizes say, a node uses a value before it is computed, or onnx's
own checker finds an error. Nothing of such a model is run.
example python:
    import mlc
    mlc.onnx.load(b"no model")
fix: write the model again, and try onnx.checker.check_model on it.

MLC0841 mlc does not run all operators of an ONNX model.
All of them are listed; `mlc import model.onnx` does so, too.
example python:
    import mlc
    from onnx import parser
    mlc.onnx.load(parser.parse_model('<ir_version: 8, opset_import: ["": 17, "mine": 1]> '
                                     'g (float[2] x) => (float[2] y) { y = mine.F(x) }'))
fix: write the model with other operators, or with functions that define them.

MLC0842 A node of an ONNX model has inputs, attributes or element types that mlc does not translate.
The notes name the node, and the functions that it is in.
example python:
    import mlc
    from onnx import parser
    mlc.onnx.load(parser.parse_model('<ir_version: 8, opset_import: ["": 17]> '
                                     'g (float[2] x) => (float[2] y) { y = Bernoulli(x) }'))
fix: the message says what is not translated; write the model without it.

MLC0843 A size, or a choice of the program, depends on the elements of an input of an ONNX model.
Sizes are those of the types of arguments and of constants of the model, and arithmetic on these.
example python:
    import mlc
    from onnx import parser
    mlc.onnx.load(parser.parse_model('<ir_version: 8, opset_import: ["": 17]> '
                                     'g (float[6] x, int64[2] n) => (float[a, b] y) { y = Reshape(x, n) }'))
fix: give the input by the constants of mlc.onnx.load, which makes it part of the program.

MLC0844 The standard backend of ONNX is given a device, or arrays, that it cannot run with.
example python:
    import numpy as np
    from onnx import helper
    import mlc.onnx.backend
    mlc.onnx.backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [np.ones(2, np.float32)], device="CUDA")
fix: use the device "CPU", and one array for each input.

MLC0845 The elements of a weight of an ONNX model are in a file that is not there, or not in the model's folder.
A model may name any file; only those in its own folder and below are read.
example text:
    error[MLC0845]: the weight 'w': its file '../../secret' is not in the folder of the model
fix: keep the files of the weights beside the model.

MLC0846 An ONNX model is called with an array of another type than the input, or an input is named that it has not.
example python:
    import mlc
    from onnx import parser
    mlc.onnx.load(parser.parse_model('<ir_version: 8, opset_import: ["": 17]> '
                                     'g (float[2] x) => (float[2] y) { y = Relu(x) }'), constants={"z": 1})
fix: pass an array of the type that the message shows, by a name that it lists.

MLC0847 An ONNX model is read or written, and the package onnx is not installed.
example text:
    error[MLC0847]: the package onnx, which reads and writes models, is not installed
fix: pip install 'mlc[onnx]'.

MLC0848 An operation has no counterpart in ONNX, and the function is not written.
example python:
    import mlc
    mlc.onnx.export(mlc.abs, (mlc.tensor([1j, 2j]),))
fix: write the function without what the message names, or use mlc.save or mlc.extension.write.

MLC0849 A model is too large for one file of ONNX, which has less than 2 GiB.
example text:
    error[MLC0849]: the arrays of the model have 3000000000 bytes, and one file holds less than 2 GiB
fix: give the name of a file and leave out external_data; the weights are written beside it.

MLC0850 The arguments of mlc.onnx.export do not fit the function.
The types of its arguments, the names of inputs and results, symbolic sizes or the version of the operators.
example python:
    import mlc
    mlc.onnx.export(mlc.relu, (mlc.ones(2),), opset_version=7)
fix: do as the hint of the message says.
'''
