"""Operations on the parameters and the gradients of modules, with the names and arguments of `torch.nn.utils`.

`clip_grad_norm_` and its relatives bound gradients before a step; `parameters_to_vector` makes one vector of all
parameters; `parametrize`, `parametrizations` and `prune` make parameters functions of others; `fusion` folds batch
normalization into the layer before it; `rnn` packs sequences of different lengths.

Example:
    >>> model = nn.Linear(3, 2)
    >>> nn.utils.parameters_to_vector(model.parameters()).shape
    (8,)
"""

from mlc.nn.utils import fusion, parametrizations, parametrize, prune, rnn, stateless
from mlc.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from mlc.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from mlc.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from mlc.nn.utils.stateless import skip_init
from mlc.nn.utils.weight_norm import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval", "fuse_conv_bn_weights",
           "fuse_linear_bn_eval", "fuse_linear_bn_weights", "fusion", "get_total_norm", "parameters_to_vector",
           "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init",
           "spectral_norm", "stateless", "vector_to_parameters", "weight_norm"]
