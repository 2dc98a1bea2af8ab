"""Error codes of PyTorch's graphs: the backend of torch.compile, and torch.export."""

TEXT = r'''
MLC0830 An operator of a PyTorch graph has arguments that mlc has no translation of.
The reason is what mlc's own function says, or that its result would have another type than PyTorch's. PyTorch runs such
an operator, so that the message is seen with `fallback` off and in `mlc.torch.report` only.
example text:
    aten.var.correction: a correction of 0.5 is no integer (model.py:12)
fix: leave the operator to PyTorch, or write the line with other arguments.

MLC0831 mlc does not run all operators of a PyTorch graph.
All of them are listed, each with its line.
example text:
    error[MLC0831]: mlc does not run 1 operator of the graph
      note: aten.linalg_eig.default: mlc has no such operator (model.py:12)
fix: with torch.compile, leave `fallback` on, so that PyTorch runs them; for torch.export write the model without them.

MLC0832 An option of torch.compile is none of mlc's.
example python:
    import mlc
    mlc.torch.backend(None, [], options={"speed": 3})
fix: use the options that the message lists.

MLC0833 An exported program of PyTorch's does more than compute results and new values of buffers.
It changes an argument in place, for one.
example text:
    error[MLC0833]: the program has a result of the kind USER_INPUT_MUTATION
fix: return the new value in place of writing it.

MLC0834 A function made by mlc.torch.export is called with a tensor of another type than it was exported for.
A size that is not named in `dynamic_shapes` is that of the example.
example text:
    error[MLC0834]: x is a float32[3, 8], and the program was exported for float32['2', '8']
fix: pass such a tensor, or export the model with dynamic_shapes.

MLC0835 A file is none that torch.export.save wrote.
example text:
    error[MLC0835]: model.pt2 is no program of torch.export
fix: write it by torch.export.save(torch.export.export(model, args), "model.pt2").

MLC0791 A program that was exported in training is called in evaluation, or the other way round.
It does what the model did in the mode of the export: dropout, for one, is in the program or it is not.
example text:
    error[MLC0791]: the program was exported in training, and is called in the other mode
fix: call train() or eval() as the hint says, or export the model in the mode that is wanted.

MLC0792 A report was asked for of something that is no module.
The graphs of a module are found by its parameters and buffers, of which a function has none.
example text:
    error[MLC0792]: a function has no parameters that tell its graphs
fix: ask for mlc.torch.report() of all graphs that were compiled, or pass the module.
'''
