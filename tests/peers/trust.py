"""Files after damage, and after processes that were killed while they wrote them; README.md says what has to hold.

    python -m tests.peers.trust damage                             every bit and every length of the entries of a cache
    python -m tests.peers.trust processes [--count 64] [--programs 200]        processes that share a cache, half killed
    python -m tests.peers.trust saves [--count 1000]               processes that are killed in mlc.save
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mlc
from mlc.backends import cache
from mlc.backends.checksummed import CorruptFile

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''
import sys, numpy as np, mlc
order = list(range(int(sys.argv[1])))
np.random.default_rng(int(sys.argv[2])).shuffle(order)
x = np.arange(8, dtype=np.float32)
out = {i: mlc.compile(lambda x: mlc.sum(mlc.tanh(x) * float(i) + mlc.exp(-x)))(x).numpy().tobytes().hex() for i in order}
print(" ".join(out[i] for i in sorted(out)))
'''  # noqa: E501


def intact(name: str, data: bytes, secret: bytes) -> bool:
    try:
        cache.check(name, data, secret)
    except CorruptFile:
        return False
    return True


def damage() -> list[str]:
    """The entries of which a changed bit or a missing end is not seen."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    mlc.compile(lambda x: mlc.softmax(x @ x.T, 1))(x)
    store = cache.store()
    assert store is not None
    secret, wrong, done = store._secret, list[str](), 0
    for path, _ in list(store.entries()):
        whole = bytearray(path.read_bytes())
        assert intact(path.name, bytes(whole), secret)
        for at in range(len(whole)):
            for bit in range(8):
                whole[at] ^= 1 << bit
                if intact(path.name, bytes(whole), secret):
                    wrong.append(f"{path.name}: bit {bit} of byte {at} of {len(whole)}")
                whole[at] ^= 1 << bit
            if intact(path.name, bytes(whole[:at]), secret):
                wrong.append(f"{path.name}: the first {at} of {len(whole)} bytes")
            done += 9
    print(f"damage: {done} changes of {len(list(store.entries()))} entries, {len(wrong)} not seen")
    return wrong


def processes(count: int, programs: int) -> list[str]:
    """Mistakes after processes have compiled the same programs, of which every other one was killed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(PROGRAM)
        running = [subprocess.Popen([sys.executable, str(path), str(programs), str(seed)], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env={**os.environ, "PYTHONPATH": str(ROOT)}) for seed in range(count)]
        draw, doomed = random.Random(0), running[::2]
        while doomed:
            time.sleep(draw.uniform(0.0, 2.0))
            doomed.pop(draw.randrange(len(doomed))).send_signal(signal.SIGKILL)
        ended = [(number, *process.communicate(), process.returncode) for number, process in enumerate(running)]
    wrong = [f"process {n} ended with {status}: {err[-300:]}" for n, _, err, status in ended
             if n % 2 and (status or err)]
    if len({out for n, out, _, _ in ended if n % 2}) != 1:
        wrong.append("the processes do not agree")
    store = cache.store()
    assert store is not None
    entries = len(list(store.entries()))
    wrong += [f"{name}: {reason}" for name, reason in store.verify()]
    wrong += [f"{path.name} is left over" for path in store.folder.glob(".*")]
    killed = sum(status == -signal.SIGKILL for *_, status in ended)
    print(f"processes: {count}, {killed} of them killed, {programs} programs, {entries} entries, {len(wrong)} wrong")
    return wrong


def saves(count: int) -> list[str]:
    """The kills after which a file is neither the old one nor the new one."""
    wrong, seen, draw = list[str](), {"old": 0, "new": 0}, random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.mlc"
        old, new = ({"w": mlc.full((50_000,), value), "n": [value] * 100} for value in (1.0, 2.0))
        mlc.save(old, file)
        for trial in range(count):
            reader, writer = os.pipe()
            child = os.fork()
            while not child:
                mlc.save(new, file)
                mlc.save(old, file)
                os.write(writer, b"saved")
            os.read(reader, 5)
            time.sleep(draw.uniform(0.0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reader)
            os.close(writer)
            try:
                found = mlc.load(file)
                value = found["n"][0]
                if found["n"] != [value] * 100 or not bool((found["w"] == value).all()):
                    wrong.append(f"kill {trial}: a mixture")
                seen["old" if value == 1.0 else "new"] += 1
            except Exception as error:
                wrong.append(f"kill {trial}: {type(error).__name__}: {error}")
        left = len(list(Path(folder).iterdir())) - 1
    print(f"saves: {count} kills, after {seen['old']} the old file, after {seen['new']} the new one, {len(wrong)} "
          f"wrong, {left} temporary files left over")
    return wrong


def main() -> None:
    p = argparse.ArgumentParser("tests.peers.trust")
    p.add_argument("what", choices=("damage", "processes", "saves"))
    p.add_argument("--count", type=int)
    p.add_argument("--programs", type=int, default=200)
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"MLC_CACHE_DIR": str(Path(folder) / "cache"), "MLC_CACHE": "1"}
        wrong = damage() if options.what == "damage" else saves(options.count or 1000) if options.what == "saves" else (
            processes(options.count or 64, options.programs))
    print("\n".join(wrong[:50]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
