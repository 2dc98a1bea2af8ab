"""Repeated calls on a device: they give what calls through Python give, and leave all else to these."""
from __future__ import annotations

import ctypes
import re
import sys
import threading
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.api import compiled_function
from mlc.backends.cuda import devices
from mlc.backends.cuda.failures import NO_ERROR, RECORD, SLOTS, Failures
from mlc.device_call import MAX_CALLS, MISSED, DeviceCall
from mlc.ir.diag import BackendError, UserError, UserIndexError
from tests.fake_device import FakeDevice

X = np.arange(6, dtype="f4").reshape(2, 3)
FACTOR = 2


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Per repeated call that was tried: whether it took the call."""
    found, call = list[bool](), DeviceCall.call

    def counted(self: DeviceCall, args: Any) -> Any:
        out = call(self, args)
        found.append(out is not MISSED)
        return out

    monkeypatch.setattr(DeviceCall, "call", counted)
    return found


def known(f: Any) -> int:
    """How many repeated calls a function looks for."""
    compiled = compiled_function(f)
    assert compiled is not None
    return len((compiled.direct or compiled).device_calls)


def address(x: Any) -> int:
    """Where the elements of a tensor lie."""
    return int(x.backing_array.address)


@pytest.mark.parametrize("graph", [False, True])
def test_calls_are_repeated(device: FakeDevice, repeated: list[bool], graph: bool) -> None:
    f = mlc.compile(lambda x, y: (x @ y, [mlc.cumsum(x, 0), "kept"]), target="cuda", graph=graph)
    for i in range(4):
        x, y = mlc.tensor(X + i).cuda(), mlc.tensor(X.T).cuda()
        product, (sums, text) = f(x, y)
        assert (product.numpy() == (X + i) @ X.T).all() and (sums.numpy() == np.cumsum(X + i, 0)).all()
        assert text == "kept" and product.device == "cuda:0" and not product.requires_grad
    assert repeated == [True] * 3 and f.entries[0].calls == 4


def test_results_that_are_kept_have_memory_of_their_own(device: FakeDevice, repeated: list[bool]) -> None:
    f = mlc.compile(lambda x: x + 1, target="cuda")
    kept = [f(mlc.tensor(X * i).cuda()) for i in range(20)]
    assert all((y.numpy() == X * i + 1).all() for i, y in enumerate(kept)) and repeated == [True] * 19
    assert len({*map(address, kept)}) == 20
    del kept
    assert mlc.cuda.memory_allocated() == 0
    f(mlc.tensor(X).cuda())
    assert mlc.cuda.memory_allocated() == 0


def test_other_arguments_are_not_repeated(device: FakeDevice, repeated: list[bool]) -> None:
    f = mlc.compile(lambda x, y: x * y, target="cuda")
    x = mlc.tensor(X).cuda()
    f(x, x)
    for y in (X, 2.0, mlc.tensor(X), mlc.tensor(X[:1]).cuda(), mlc.tensor(X.astype("f8")).cuda(),
              mlc.tensor(X.astype("i4")).cuda()):
        repeated.clear()
        assert (f(x, y).numpy() == X * np.asarray(y)).all() and not any(repeated)
    assert (f(x, y=x).numpy() == X * X).all() and not any(repeated)
    with pytest.raises(TypeError):
        f(x)
    assert (f(x, x).numpy() == X * X).all() and repeated[-1]
    for n in range(1, 2 * MAX_CALLS):
        y = mlc.tensor(np.ones(n, "f4")).cuda()
        assert f(y, y).tolist() == f(y, y).tolist() == [1] * n and repeated[-1]
    assert known(f) == MAX_CALLS


def test_one_code_for_all_sizes_is_repeated_for_each(device: FakeDevice, repeated: list[bool]) -> None:
    f = mlc.compile(lambda x: mlc.cumsum(x, 0), target="cuda", args=[mlc.spec("N")])
    for n in (3, 5, 3, 5):
        assert f(mlc.ones(n).cuda()).tolist() == [*range(1, n + 1)]
    assert len(f.entries) == 1 and known(f) == 2 and repeated.count(True) == 2


def test_tensors_of_another_device(repeated: list[bool]) -> None:
    devices.substitute({0: FakeDevice(), 1: FakeDevice(1)})
    try:
        f = mlc.compile(lambda x: x - 1)
        x, y = mlc.tensor(X).to("cuda:0"), mlc.tensor(X).to("cuda:1")
        for z in (x, y, x, y, mlc.tensor(X)):
            found = f(z)
            assert found.device == z.device and (found.numpy() == X - 1).all()
        assert known(f) == 2 and repeated.count(True) == 2
    finally:
        devices.substitute(None)


def test_donated_arguments(device: FakeDevice, repeated: list[bool]) -> None:
    f = mlc.compile(lambda x, y: x + y, donate="x", target="cuda")
    y, held = mlc.ones(2, 3).cuda(), mlc.tensor(X).cuda()
    place = address(held)
    for _ in range(4):
        x = held
        held = f(x, y)
        assert address(held) == place
        with pytest.raises(UserError, match="MLC0343"):
            x.numpy()
        with pytest.raises(UserError, match="MLC0343"):
            f(x, y)
    assert (held.numpy() == X + 4).all() and repeated.count(True) == 3
    with pytest.raises(UserError, match="MLC0329"):
        f(held, held)
    assert (held.numpy() == X + 4).all()
    array: Any = held.backing_array
    array.storage.writable = False
    with pytest.raises(UserError, match="MLC0326"):
        f(held, y)


def test_threads_call_one_function(device: FakeDevice, repeated: list[bool]) -> None:
    f, found = mlc.compile(lambda x: mlc.cumsum(x @ x.T, 0), target="cuda", graph=True), dict[int, bool]()
    f(mlc.tensor(X).cuda())

    def work(i: int) -> None:
        x = mlc.tensor(X + i).cuda()
        wanted = np.cumsum((X + i) @ (X + i).T, 0)
        found[i] = all((f(x).numpy() == wanted).all() for _ in range(20))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert [*found.values()] == [True] * 4 and repeated.count(True) == 80


def test_calls_are_recorded_for_backward_as_before(device: FakeDevice, repeated: list[bool]) -> None:
    f = mlc.compile(lambda x: (x * x).sum(), target="cuda")
    x = mlc.tensor(X).cuda()
    f(x), f(x)
    assert repeated == [True]
    x.requires_grad_()
    f(x).backward()
    assert repeated == [True, False] and x.grad is not None and (x.grad.numpy() == 2 * X).all()
    with mlc.no_grad():
        assert not f(x).requires_grad and repeated[-1]


def test_what_is_reached_may_change(device: FakeDevice, repeated: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    f = mlc.compile(lambda x: x * FACTOR, target="cuda")
    x = mlc.tensor(X).cuda()
    assert f(x).tolist() == f(x).tolist() == (2 * X).tolist() and repeated == [True]
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert f(x).tolist() == f(x).tolist() == (3 * X).tolist()
    monkeypatch.setitem(globals(), "FACTOR", 2)
    assert f(x).tolist() == (2 * X).tolist() and repeated[-1]


def test_tensors_that_are_reached(device: FakeDevice, repeated: list[bool]) -> None:
    model: Any = nn.Linear(3, 2).to("cuda")
    f, x = mlc.compile(model), mlc.tensor(X).cuda()

    def check(taken: bool) -> None:
        repeated.clear()
        wanted = X @ model.weight.detach().cpu().numpy().T + model.bias.detach().cpu().numpy()
        np.testing.assert_allclose(f(x).detach().cpu().numpy(), wanted, rtol=1e-5, atol=1e-6)
        assert any(repeated) is taken

    with mlc.no_grad():
        check(False)
        check(True)
        model.weight.mul_(2)                               # other elements, in other memory
        check(True)
        check(True)
        model.bias.data = mlc.ones(2).cuda()
        check(True)
    check(False)                                           # recorded for backward
    assert f(x).requires_grad
    model.requires_grad_(False)                            # which it is recorded for
    check(False)
    check(True)
    model.requires_grad_()
    check(False)
    model.to("cpu")
    with mlc.no_grad(), pytest.raises(UserError):
        model(x)
    model.to("cuda")
    with mlc.no_grad():
        check(True)
        model.weight = nn.Parameter(mlc.zeros(2, 3).cuda())
        check(False)
        check(True)


def test_a_module_in_training_and_evaluation(device: FakeDevice, repeated: list[bool]) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(1.0)).to("cuda")
    f, x = mlc.compile(model), mlc.tensor(X).cuda()
    with mlc.no_grad():
        for _ in range(3):
            assert not f(x).numpy().any()
            model.eval()
            assert f(x).numpy().any()
            model.train()


def test_functions_that_do_more_are_not_repeated(device: FakeDevice) -> None:
    total, x = mlc.zeros(2, 3).cuda(), mlc.tensor(X).cuda()

    def accumulate(x: Any) -> Any:
        total.add_(x)
        return total * 1

    def same(x: Any) -> Any:
        return x, x + 1

    def draw(x: Any) -> Any:
        return x + mlc.rand(2, 3)

    f, g, h = (mlc.compile(what, target="cuda") for what in (accumulate, same, draw))
    assert [f(x).tolist() for _ in range(3)] == [(X * i).tolist() for i in (1, 2, 3)] and known(f) == 0
    assert all(g(x)[0] is x for _ in range(3)) and known(g) == 0
    assert not (h(x).numpy() == h(x).numpy()).all() and known(h) == 0


def test_calls_that_are_looked_at_go_through_python(device: FakeDevice, repeated: list[bool]) -> None:
    f, x = mlc.compile(lambda x: x / x, target="cuda"), mlc.tensor(X).cuda()
    f(x), f(x)
    with mlc.profiler.profile() as found:
        f(x)
    assert [event.key for event in found.key_averages()] == ["function"]
    with mlc.detect_anomaly():
        f(x)
    assert repeated == [True, False, False]
    assert mlc.compile(lambda x: f(x) * 2, target="cuda")(x + 1).tolist() == [[2.0] * 3] * 2
    checked = mlc.compile(lambda x: x * 2, target="cuda", check=True)
    checked(x), checked(x)
    assert known(checked) == 0 and repeated.count(True) == 1


def test_dual_tensors_and_autocast(device: FakeDevice, repeated: list[bool]) -> None:
    f, x = mlc.compile(lambda x: x @ x.T, target="cuda"), mlc.tensor(X).cuda()
    f(x), f(x)
    with mlc.autocast("cuda"):
        assert f(x).dtype is mlc.float16
    assert mlc.jvp(f, (x,), (mlc.ones(2, 3).cuda(),))[1].shape == (2, 2)
    with mlc.autograd.forward_ad.dual_level():
        dual = mlc.autograd.forward_ad.make_dual(x, mlc.ones(2, 3).cuda())
        assert mlc.autograd.forward_ad.unpack_dual(f(dual)).tangent is not None
    assert repeated.count(True) == 1 and f(x).dtype is mlc.float32 and repeated[-1]


def lost(device: Any) -> None:
    raise BackendError("lost", code="MLC0587")


def test_a_launch_that_fails(device: FakeDevice, repeated: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = mlc.compile(lambda x, y: mlc.cumsum(x @ y, 0), donate="y", target="cuda", graph=True), mlc.ones(3, 3).cuda()
    f(x, mlc.ones(3, 3).cuda())
    y = mlc.ones(3, 3).cuda()
    with monkeypatch.context() as patch:
        patch.setattr(FakeDevice, "activate", lost)
        with pytest.raises(BackendError, match="MLC0587"):
            f(x, y)
    assert f(x, y).tolist() == [[3] * 3, [6] * 3, [9] * 3] and repeated == [True]


# -- memory of results -------------------------------------------------------------------------------------------------
def test_results_take_turns_in_memory_that_nobody_holds(device: FakeDevice) -> None:
    f, x = mlc.compile(lambda x: x + 1, target="cuda"), mlc.tensor(X).cuda()
    places = list[Any]()
    for _ in range(6):
        y = f(x)
        places.append(address(y))
    assert len({*places[2:]}) == 2 and len(places) == 6
    first: Any = y.backing_array                           # an array alone, without its tensor
    del y
    later = [f(x + i) for i in range(4)]
    assert first.address not in [address(z) for z in later] and (first.numpy() == X + 1).all()
    assert all((z.numpy() == X + i + 1).all() for i, z in enumerate(later))
    part = first.first((1, 3))                             # shares the memory of the whole
    del first
    later.clear()
    for _ in range(4):
        f(x + 7)
    assert (part.numpy() == X[:1] + 1).all()


def test_memory_that_is_kept_for_calls_is_not_in_use(device: FakeDevice) -> None:
    f, x = mlc.compile(lambda x: x + 1, target="cuda"), mlc.zeros(1000).cuda()
    for _ in range(4):
        y = f(x)
    assert mlc.cuda.memory_allocated() == 2 * 4096
    assert (f(x).numpy() == 1).all() and (y.numpy() == 1).all()
    del x, y
    assert mlc.cuda.memory_allocated() == 0
    mlc.cuda.empty_cache()
    assert device.taken <= 512 and mlc.cuda.memory_reserved() == device.taken


def test_memory_that_is_kept_for_calls_goes_before_there_is_none() -> None:
    devices.substitute({0: FakeDevice(capacity=24_000)})
    try:
        f, x = mlc.compile(lambda x: x + 1, target="cuda"), mlc.zeros(1000).cuda()
        for _ in range(4):
            f(x)
        assert mlc.zeros(4000).cuda().numel() == 4000      # beside x, and no more than that
    finally:
        devices.substitute(None)


def test_memory_that_others_use_is_not_reused(device: FakeDevice) -> None:
    f, x = mlc.compile(lambda x: x + 1, target="cuda"), mlc.tensor(X).cuda()
    for _ in range(3):
        f(x)
    y: Any = f(x)
    capsule = y.__dlpack__(stream=-1)
    place = address(y)
    del y
    found = [f(x) for _ in range(4)]
    assert all(address(z) != place for z in found)
    del capsule, found
    waits = device.waits
    assert mlc.cuda.memory_allocated() == 512 and device.waits == waits + 1


def test_a_training_step_reads_its_settings_anew(device: FakeDevice) -> None:
    """Such as a learning rate, of which the device has a copy."""
    found = []
    for where in ("cpu", "cuda"):
        w = nn.Parameter(mlc.tensor(X, device=where))
        optimizer: Any = mlc.optim.SGD([w], lr=0.1, momentum=0.5)

        def step(x: Any, w: Any = w, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ((w * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        f, x, losses = mlc.compile(step), mlc.tensor(X + 1, device=where), []
        for i in range(8):
            if i in (3, 6):
                optimizer.param_groups[0]["lr"] /= 10
            losses.append(f(x).item())
        found.append((losses, w.detach().numpy(), w.grad.numpy()))  # type: ignore[union-attr]
        if where == "cuda":
            assert device.uploads <= 2 + 3 * 4             # the settings, once for each of their values
    for there, here in zip(found[1], found[0]):
        np.testing.assert_allclose(there, here, rtol=1e-5)


def test_numbers_that_are_arguments(device: FakeDevice) -> None:
    f = mlc.compile(lambda x, n: x * n, target="cuda")
    x = mlc.tensor(X).cuda()
    for n in (2.0, 3.0, 3.0, -0.0, 0.0, 0.0):
        assert f(x, np.float32(n)).numpy().tobytes() == (X * np.float32(n)).tobytes()
        assert f(x, np.full((), n, "f4")).numpy().tobytes() == (X * np.float32(n)).tobytes()
    # x, the first calls, and each number once from then on: those of numpy are numbers, and arrays are f32
    assert device.uploads == 1 + 2 + 2 * 3
    del x
    assert mlc.cuda.memory_allocated() == 0
    g = mlc.compile(lambda x, n: x * n, donate="n", target="cuda")
    assert [g(np.float32(3), np.full((), 2, "f4")).item() for _ in range(3)] == [6.0] * 3


def test_repeated_calls_report_their_errors_to_whoever_waits(device: FakeDevice, monkeypatch: Any) -> None:
    take = mlc.compile(lambda x, i: mlc.index_select(x, 0, i))
    x, good, bad = (mlc.tensor(a).cuda() for a in (np.arange(3.0), np.array([1, 2]), np.array([1, 5])))
    assert take(x, good).tolist() == [1, 2]
    message = r"MLC0340.*axis 0 of size 3"
    for look in (lambda y: y.tolist(), lambda y: mlc.cuda.synchronize(), lambda y: take(x, good),
                 lambda y: y.backing_array.__dlpack__()):
        result = take(x, bad)                              # does not wait
        with pytest.raises(UserIndexError, match=message):
            look(result)
        assert take(x, good).tolist() == [1, 2]            # it is reported once
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with pytest.raises(UserIndexError, match=message):
        take(x, bad)


def test_errors_are_kept_for_many_calls_that_are_under_way() -> None:
    device = FakeDevice()
    late: list[Any] = []
    monkey: Any = device
    monkey.fetch = lambda target, source, size: late.append((target, device.bytes(source, size).tobytes()))

    def synchronize() -> None:                             # only now they are there
        for target, content in late:
            ctypes.memmove(target, content, RECORD)
        late.clear()

    monkey.synchronize = synchronize
    failures = Failures(device)
    record = device.allocate(RECORD)
    assert record is not None
    raised = list[str]()
    for number in range(3 * SLOTS):
        try:
            failures.make_room()
        except UserError as error:                         # before the next call is made
            raised.append(str(error))
        device.upload(record, np.array([number if number in (5, SLOTS, 3 * SLOTS - 1) else NO_ERROR]))
        failures.watch(lambda found: UserError(f"record {found}.", code="MLC0340"), record)
    with pytest.raises(UserError, match=f"record {3 * SLOTS - 1}."):
        synchronize()
        failures.check()
    assert not failures.pending and [int(re.findall(r"record (\d+)", text)[0]) for text in raised] == [5, SLOTS]


def test_threads_that_call_one_function_do_not_lose_errors(device: FakeDevice) -> None:
    take = mlc.compile(lambda x, i: mlc.index_select(x, 0, i))
    x, good, bad = (mlc.tensor(a).cuda() for a in (np.arange(3.0), np.array([1, 2]), np.array([1, 5])))
    take(x, good).tolist()
    failed = list[int]()

    def calls(index: Any) -> None:
        for _ in range(30):
            try:
                take(x, index)
                mlc.cuda.synchronize()
            except UserIndexError:
                failed.append(1)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=calls, args=(index,)) for index in (good, bad, good)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    try:
        mlc.cuda.synchronize()
    except UserIndexError:
        failed.append(1)
    assert len(failed) == 30                               # each call with the bad index, once
