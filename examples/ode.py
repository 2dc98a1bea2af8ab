"""An ODE solver that chooses its steps (Bogacki and Shampine's pair of orders 2 and 3), differentiated and compiled.

    python examples/ode.py

The pendulum x'' = -sin(x) is followed for a while. Newton's method then finds the starting speed with which it arrives
at a given angle, with the derivative through all steps of the solver.
"""

import numpy as np

import mlc


def pendulum(state):
    angle, speed = state
    return mlc.stack([speed, -mlc.sin(angle)])


def solve(f, state, end, tolerance=1e-6):
    """state(end), from state(0), and how many steps were tried. A step that errs too much is tried again, shorter."""
    time, step, tried = 0.0, 0.1, 0
    slope = f(state)
    while time < end:
        step = mlc.minimum(step, end - time)
        second = f(state + step * slope / 2)
        third = f(state + step * 3 * second / 4)
        after = state + step * (2 * slope + 3 * second + 4 * third) / 9
        last = f(after)
        error = mlc.abs(step * (-5 * slope + 6 * second + 8 * third - 9 * last) / 72).max()
        if error <= tolerance:
            time, state, slope = time + step, after, last
        step = step * mlc.clamp(0.9 * (tolerance / (error + 1e-300)) ** (1 / 3), 0.2, 5.0)
        tried += 1
    return state, tried


def angle_at(speed, end):
    state, _ = solve(pendulum, mlc.stack([mlc.zeros((), dtype=mlc.float64), speed]), end)
    return state[0]


def main(target=1.0, end=3.0):
    def miss(speed):
        return angle_at(speed, end) - target

    @mlc.compile
    def correct(speed):
        off, slope = mlc.value_and_grad(miss)(speed)
        return off, speed - off / slope

    speed = np.array(1.5)
    for step in range(6):
        off, speed = correct(speed)
        print(f"step {step}   starting speed {float(speed):.9f}   miss {float(off):+.1e}")
    return abs(float(off))


if __name__ == "__main__":
    main()
