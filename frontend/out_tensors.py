"""`out=`: the result of a function, written to a tensor that exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.autograd.tangents import tangent_of
from mlc.frontend.in_place import check_writable, store
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError

OF_EQUAL_DTYPE = frozenset("""
abs addbmm addmm addmv alias_copy all amax amin aminmax any argmax argmin as_strided_copy avg_pool2d avg_pool3d
baddbmm bitwise_not bmm bucketize ceil complex conj_physical cross cummax cummin diag diagonal_copy dot expand_copy
fft.ifft fft.ihfft floor frac frexp gather gelu hardshrink heaviside histc histogram index_add index_copy index_reduce
index_select isin isneginf isposinf kthvalue linalg.cholesky linalg.cholesky_ex linalg.cross linalg.det linalg.eigh
linalg.eigvalsh linalg.inv linalg.inv_ex linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve
linalg.matrix_norm linalg.multi_dot linalg.norm linalg.qr linalg.slogdet linalg.solve linalg.solve_ex
linalg.solve_triangular linalg.svd linalg.svdvals linalg.vecdot linalg.vector_norm linear logcumsumexp logsigmoid
lu_solve lu_unpack masked_select matmul mm mode msort multinomial mv nan_to_num nanquantile narrow_copy
native_batch_norm neg nonzero norm ormqr permute_copy polar qr quantile renorm round scatter scatter_add
scatter_reduce searchsorted sgn sign signbit slice_scatter softplus softshrink sort split_with_sizes_copy squeeze_copy
svd t_copy take take_along_dim tensordot topk transpose_copy triangular_solve tril triu trunc unbind_copy unfold_copy
unsqueeze_copy vdot view_copy where
""".split())
"""Functions whose `out` has to be of the dtype of the result, as in PyTorch; that of others may be of a wider one."""


def write_out(name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`function(*args, out=tensor)`: the result of the function, written to a tensor or to several."""
    keywords = dict(keywords)
    out = keywords.pop("out")
    if out is None:
        return function(*args, **keywords)
    with GradMode(False):
        result = function(*args, **keywords)
    targets, found = (out, result) if isinstance(out, tuple | list) else ((out,), (result,))
    if len(targets) != len(found) or not all(isinstance(t, Tensor) for t in targets):
        raise UserTypeError("out is a tensor per result", code="MLC0755", loc=user_loc())
    for target, new in zip(targets, found):
        check_writable(target)
        if target.dtype is not new.dtype and name in OF_EQUAL_DTYPE:
            raise UserTypeError(f"the result is of {new.dtype.name}, and out of {target.dtype.name}", code="MLC0755",
                                loc=user_loc())
    if any(tangent_of(x) is not None for x in (*args, *keywords.values(), *targets)):
        raise UserError("what is written to out has no tangent, and a tensor here is dual", code="MLC0755",
                        loc=user_loc(), hint="leave out `out`")
    if mode.enabled and any(type(x) is Tensor and x.requires_grad for x in (*args, *keywords.values(), *targets)):
        raise UserError("what is written to out is not recorded, and a tensor here requires a gradient",
                        code="MLC0755", loc=user_loc(), hint="leave out `out`, or write within mlc.no_grad")
    for target, new in zip(targets, found):
        with GradMode(False):
            if type(target) is Tensor and target.shape != new.shape and not target.numel():
                target.replace_elements(new.to(target.dtype))
            else:
                store(target, new, args)
    return out
