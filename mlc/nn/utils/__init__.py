"""Clipping of gradients and conversion of parameters to vectors, with the names and arguments of `torch.nn.utils`."""

from mlc.nn.utils import rnn
from mlc.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from mlc.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
           "clip_grad_norm_",
           "clip_grad_value_",
           "clip_grads_with_norm_",
           "get_total_norm",
           "parameters_to_vector",
           "rnn",
           "vector_to_parameters",
]
