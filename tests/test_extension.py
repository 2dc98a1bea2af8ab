"""Modules that Python imports without mlc: they mean what the compiled functions mean, and refuse what does not fit."""
from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlc
from mlc import extension
from tests import extension_model as model
from tests.arrays import Array
from tests.test_executable import LAYOUTS

ROOT = Path(__file__).parent.parent
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((5, 16)).astype(np.float32), RNG.standard_normal((16, 4)).astype(np.float32)
SMALL = RNG.standard_normal((4, 6)).astype(np.float32)
MODEL = "tests/extension_model.py"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extension") / "everything.so"
    extension.write(path, model.FUNCTIONS, cpu=["x86-64-v3"])
    return path


@pytest.fixture(scope="module")
def everything(built: Path) -> Any:
    return mlc.load(built)


def same(got: Any, want: Any) -> bool:
    """Whether two arrays are the same to the bit."""
    want = want.numpy() if isinstance(want, mlc.Tensor) else np.asarray(want)
    return type(got) is np.ndarray and got.dtype == want.dtype and got.shape == want.shape \
        and got.tobytes() == want.tobytes()


# -- what a call means ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, args, keywords", [
    ("plain", (X, W), {}), ("plain", (X[:1], W), {}), ("plain", (X[:0], W), {}), ("plain", (X,), {"w": W}),
    ("net", (SMALL,), {}), ("pick", (X[:, :3].copy(), np.array([4, 0, 0])), {}),
    ("halves", (X[0], X[1, :8]), {}), ("scaled", (X[0], 2.5), {"times": 3}), ("scaled", (X[0], 2), {"times": -1}),
    ("scaled", (X[0], np.float32(0.1)), {"times": np.int32(7)}), ("narrowed", (X[0],), {}),
    ("groups", (X[0], X[1, :5]), {}),
])
def test_the_same_bits_as_in_the_process(everything: Any, name: str, args: Any, keywords: Any) -> None:
    assert same(getattr(everything, name)(*args, **keywords), model.FUNCTIONS[name](*args, **keywords))


def test_element_types(everything: Any) -> None:
    """bfloat16, which no buffer can describe, goes in and out as its bits."""
    given: dict[str, Any] = {
        kind: RNG.integers(0, 2, (3, 2)).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
        for kind in model.KINDS}
    want = model.FUNCTIONS["flips"](given)
    bits = {**given, "bfloat16": given["bfloat16"].view(np.uint16)}
    got = everything.flips(bits)
    assert list(got) == list(want)
    for kind in model.KINDS:
        array = want[kind].numpy()
        assert same(got[kind], array.view(np.uint16) if kind == "bfloat16" else array), kind
    with pytest.raises(TypeError, match=r"xs\['bfloat16'\] is a ndarray, expected an array uint16 \(bits of bfloat"):
        everything.flips(given)


def test_containers(everything: Any) -> None:
    w, b = X[:3, :2].copy(), X[0, :2].copy()
    params = {"rest": ([b, np.float32(3)], None), "w": w}       # keys in any order
    got, want = everything.tree(params, X[:, :3]), model.FUNCTIONS["tree"](params, X[:, :3])
    assert list(got) == ["y", 3, "count", "half", "yes", "pair", "box"]
    assert same(got["y"][0], want["y"][0]) and same(got["y"][1][0], want["y"][1][0]) and got["y"][1][1] is None
    assert (got[3], got["count"], got["half"], got["yes"]) == ("three", 2, 0.5, True)
    assert type(got["pair"]) is tuple and same(got["pair"][0], w)
    assert list(got["box"]) == ["content"] and same(got["box"]["content"], X[:, :3])


def test_modules_are_dicts_of_arrays(everything: Any) -> None:
    held = extension.arrays(model.model)
    assert set(held) == set(model.model.state_dict())
    back, out = everything.through(held, SMALL)
    assert same(out, model.model(SMALL)) and list(back) == list(held)
    assert all(same(back[name], held[name]) for name in held)


def test_a_random_state_goes_through(everything: Any) -> None:
    mine: Any = mlc.random.key(3)
    theirs = mine.numpy().copy()
    for _ in range(3):
        mine, want = model.FUNCTIONS["noise"](mine, X[0])
        theirs, got = everything.noise(theirs, X[0])
        assert same(got, want) and same(theirs, mine)


def test_many_arguments(everything: Any) -> None:
    """More than a call describes on its stack."""
    xs = [np.full(3, i, np.float32) for i in range(70)]
    assert all(same(got, 2 * x) for got, x in zip(everything.many(xs), xs, strict=True))
    with pytest.raises(ValueError, match=r"^argument xs\[69\] has size 2 on axis 0, expected N = 3$"):
        everything.many([*xs[:-1], xs[0][:2]])


def test_donated_arrays_are_the_results(everything: Any) -> None:
    w, grads = X[0].copy(), X[1]
    want = model.FUNCTIONS["updated"]({"w": w.copy()}, grads)
    got, total = everything.updated({"w": w}, grads)
    assert got["w"] is w and same(w, want[0]["w"]) and same(total, want[1])


@pytest.mark.parametrize("layout", [*LAYOUTS, "read-only", "memoryview", "Python buffer"])
def test_any_layout_is_taken(everything: Any, layout: str) -> None:
    x: Any = LAYOUTS[layout](X) if layout in LAYOUTS else X.copy()
    if layout == "read-only":
        x.flags.writeable = False
    elif layout != "read-only" and layout not in LAYOUTS:
        x = X.data if layout == "memoryview" else (ctypes.c_float * 16 * 5).from_buffer_copy(X.tobytes())
    assert same(everything.plain(x, W), everything.plain(X, W))


# -- what is refused --------------------------------------------------------------------------------------------------
def locked(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


REFUSED: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    ("count", lambda m: m.plain(X), TypeError, "plain() needs the argument w"),
    ("too many", lambda m: m.plain(X, W, W), TypeError, "plain() takes 2 positional arguments, got 3"),
    ("unknown", lambda m: m.plain(X, W, bias=W), TypeError, "plain() has no parameter bias"),
    ("twice", lambda m: m.plain(X, W, x=X), TypeError, "plain() has two values for x"),
    ("keyword only", lambda m: m.scaled(X[0], 1, 2), TypeError, "scaled() takes 2 positional arguments, got 3"),
    ("list", lambda m: m.plain([[1.0]], W), TypeError,
     "argument x is a list, expected an array float32[B, 16]"),
    ("dtype", lambda m: m.plain(X.astype(np.float64), W), TypeError,
     "argument x has dtype float64, expected float32"),
    ("foreign dtype", lambda m: m.plain(X, memoryview(bytes(4))), TypeError,
     "argument w has dtype B, expected float32"),
    ("strange dtype", lambda m: m.plain(np.zeros((2, 16), "f4,i4"), W), TypeError,
     "argument x has dtype [('f0', '<f4'), ('f1', '<i4')], expected float32"),
    ("rank", lambda m: m.plain(X[0], W), TypeError,
     "argument x has 1 dimensions, its type float32[B, 16] has 2"),
    ("size", lambda m: m.plain(X[:, :4], W), ValueError, "argument x has size 4 on axis 1, expected 16"),
    ("relation", lambda m: m.halves(X[0], X[1, :7]), ValueError,
     "argument x has size 16 on axis 0, expected 2*B = 14"),
    ("meaning", lambda m: m.narrowed(X[0, :3]), ValueError, "extension_model.py:NUMBER:NUMBER: 2 to 10 is not within a "
     "dimension of N, where N = 3"),
    ("division", lambda m: m.groups(X[0], X[0, :0]), ValueError, "extension_model.py:NUMBER:NUMBER: tensor.iota: the "
     "size (N floordiv M) divides by M, which is not positive, where N = 16, M = 0"),
    ("result", lambda m: m.outer(np.zeros((1 << 33, 0), np.float32), np.zeros((1 << 33, 0), np.float32)), ValueError,
     "outer: result 0 would be float32[N, M] where N = 8589934592, M = 8589934592"),
    ("number", lambda m: m.scaled(X[0], 1.0, times=2.5), TypeError, "argument times is 2.5, which is no int32"),
    ("large number", lambda m: m.scaled(X[0], 1.0, times=2**40), TypeError,
     "argument times is 1099511627776, which is no int32"),
    ("index", lambda m: m.pick(X[:, :3].copy(), np.array([0, 5])), IndexError,
     "extension_model.py:NUMBER:NUMBER: an index of take is out of range for axis 0 of size B "
     "(element 3 of the kernel)"),
    ("assertion", lambda m: m.checked(-np.ones(3, np.float32)), AssertionError,
     "extension_model.py:NUMBER:NUMBER: 100% of nothing"),
    ("key", lambda m: m.tree({"w": X, "rust": 1}, X), TypeError, "params has no key 'rest'"),
    ("keys", lambda m: m.tree({"w": X, "rest": ([X, 1.0], None), "more": 2}, X), TypeError,
     "params has 3 keys, expected 2: 'w', 'rest'"),
    ("tuple", lambda m: m.tree({"w": X, "rest": [1, None]}, X), TypeError,
     "params['rest'] is a list, expected a tuple"),
    ("length", lambda m: m.tree({"w": X, "rest": (1,)}, X), TypeError, "params['rest'] has 1 elements, expected 2"),
    ("none", lambda m: m.tree({"w": X, "rest": ([X[0, :2], X[0, 0]], 0)}, X), TypeError,
     "params['rest'][1] is a int, expected None"),
    ("read-only", lambda m: m.updated({"w": locked(X[0])}, X[1]), ValueError,
     "argument params['w'] is donated, but its memory is not writable, aligned and contiguous in row-major order"),
    ("stride", lambda m: m.updated({"w": X.copy()[:, 0]}, X[:, 1]), ValueError,
     "argument params['w'] is donated, but its memory is not writable, aligned and contiguous in row-major order"),
    ("shared", lambda m: (lambda x: m.updated({"w": x}, x))(X[0].copy()), ValueError,
     "argument params['w'] is donated, but shares memory with another argument: pass a copy of one of them"),
]


@pytest.mark.parametrize("call, kind, text", [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_refused(everything: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call(everything)
    assert re.fullmatch(re.escape(text).replace("NUMBER", r"\d+"), str(caught.value)), \
        str(caught.value)


class Treacherous(str):
    """A key that empties the dict in which it is looked for."""

    __slots__ = ("victim",)
    victim: dict[str, Any]

    def __hash__(self) -> int:
        return hash("rest")

    def __eq__(self, other: object) -> bool:
        self.victim.clear()
        return False


def test_arguments_may_change_while_they_are_taken_apart(everything: Any) -> None:
    for _ in range(20):
        key = Treacherous("rest")
        key.victim = {"w": np.zeros((3, 2), np.float32)}
        key.victim[key] = 1
        with pytest.raises((TypeError, RuntimeError)):
            everything.tree(key.victim, X[:, :3])


def test_the_gil_is_free_during_long_work(everything: Any) -> None:
    x = RNG.standard_normal((700, 700)).astype(np.float32)
    everything.long_work(x)
    seen, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            seen[0] += 1
            time.sleep(0.0001)
    counter = threading.Thread(target=count)
    counter.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)                               # nobody is made to give the lock away
    try:
        before = seen[0]
        everything.long_work(x)
        assert seen[0] > before + 2
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join()


def test_calls_are_re_entrant(everything: Any) -> None:
    inputs = [RNG.standard_normal((n, 16)).astype(np.float32) for n in (1, 7, 300, 2000)]
    want = [everything.plain(x, W) for x in inputs]
    wrong = list[int]()

    def work(i: int) -> None:
        wrong.extend(i for _ in range(100) if not same(everything.plain(inputs[i], W), want[i]))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_leaks(everything: Any) -> None:
    params = {"w": X[:3, :2].copy(), "rest": ([X[0, :2].copy(), X[0, 0].copy()], None)}
    x = X[:, :3].copy()
    objects = [x, params, params["w"], W, X]
    everything.tree(params, x)
    before = [sys.getrefcount(obj) for obj in objects]
    for _ in range(50):
        everything.tree(params, x)
        for _, call, kind, _ in REFUSED:
            with pytest.raises(kind):
                call(everything)
    gc.collect()
    assert [sys.getrefcount(obj) for obj in objects] == before


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_change_no_bit(built: Path, everything: Any, count: int) -> None:
    x = RNG.standard_normal((300, 300)).astype(np.float32)
    want = model.FUNCTIONS["long_work"](x)
    library = ctypes.CDLL(str(built))
    library.everything_set_num_threads(count)
    assert same(everything.long_work(x), want)
    if (child := os.fork()) == 0:                            # which has none of the threads
        os._exit(0 if same(everything.long_work(x), want) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
