"""Error codes of modules: hooks, states, sequences, parametrizations, pruning."""

TEXT = r'''
MLC0736 A hook of a module returns something that cannot stand in for what it was given.
A forward pre-hook with keyword arguments gives None or a pair of positional and keyword arguments; a backward hook
gives None or as many gradients as it was given.
example python:
    import mlc
    from mlc import nn
    layer = nn.Linear(2, 3)
    layer.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    layer(mlc.ones(2))
fix: return None, or what the message says.

MLC0737 A module with backward hooks is called in a function that is recorded.
Only `backward` calls these hooks; a recorded function has a gradient that is compiled as a whole.
example python:
    import mlc
    from mlc import nn
    layer = nn.Linear(2, 3)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    mlc.compile(lambda m, x: m(x))(layer, mlc.ones(2))
fix: remove the hooks before, or call the function eagerly.

MLC0738 A module has no state besides its tensors.
`get_extra_state` and `set_extra_state` are called, and its class does not define them.
example python:
    from mlc import nn
    nn.Linear(2, 3).get_extra_state()
fix: define both methods.

MLC0739 Lengths of sequences do not fit.
One is below 1 or beyond the end of the padded tensor, their number is another than that of the sequences, or they are
not in the order that is asked for.
example python:
    import mlc
    from mlc import nn
    nn.utils.rnn.pack_padded_sequence(mlc.ones(4, 2, 3), [2, 4])
fix: correct the lengths, or pass enforce_sorted=False.

MLC0740 Lengths of sequences are not known, or something is no packed sequence.
The shape of packed sequences depends on the lengths, so they cannot be computed in the function that is recorded.
example python:
    import mlc
    from mlc import nn
    mlc.compile(lambda x, n: nn.utils.rnn.pack_padded_sequence(x, n).data)(mlc.ones(4, 2, 3), mlc.tensor([4, 2]))
fix: pass the lengths as a list of integers, or pack the sequences outside of the recorded function.

MLC0741 A lazy layer is called for the first time in a function that is recorded.
The call would make its parameters, which a recorded function may not.
example python:
    import mlc
    from mlc import nn
    mlc.compile(lambda m, x: m(x))(nn.LazyLinear(3), mlc.ones(2))
fix: call the module once before, eagerly.

MLC0742 A parametrization does not give what stands for the parameter.
Its shape or dtype is another one, or a value is assigned and there is no right_inverse.
example python:
    from mlc import nn
    class Rows(nn.Module):
        def forward(self, x):
            return x[:1]
    nn.utils.parametrize.register_parametrization(nn.Linear(2, 3), "weight", Rows())
fix: correct `forward`, define `right_inverse`, or pass unsafe=True.

MLC0743 A module has no parameter of this name, or it is not computed from others.
Parametrizations, weight_norm, spectral_norm and pruning replace parameters that a module holds itself.
example python:
    from mlc import nn
    nn.utils.weight_norm(nn.Sequential(nn.Linear(2, 3)))
fix: pass the module that holds the parameter, and its name there.

MLC0744 A layer and a batch normalization cannot be fused.
One of them is in training, where the statistics are those of the batch, or they have different numbers of features.
example python:
    from mlc import nn
    nn.utils.fuse_conv_bn_eval(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
fix: call eval() on both.

MLC0745 A module cannot be made without initial values.
skip_init is given something that is no class of modules, or one without `device`.
example python:
    from mlc import nn
    nn.utils.skip_init(nn.ReLU)
fix: call the class within nn.init.shapes_only().

MLC0746 A parameter cannot be pruned like this.
The amount is out of range, scores or mask have another shape, or the parameter is not pruned and to be restored.
example python:
    from mlc import nn
    nn.utils.prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=1.5)
fix: give a part between 0 and 1, or an integer up to the number of elements.
'''
