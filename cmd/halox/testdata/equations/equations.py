"""Computes 200 steps of an equation, and prints how far the fields in files are from it.

usage: equations.py NAME FIELD.npy ...
"""
import sys

import numpy as np

STEPS = 200


def axes(*ends):
    """Coordinates of each axis, x first: of points between two values, as many as are named."""
    return np.meshgrid(*ends, indexing="ij")


def periodic(n, length):
    return np.arange(n) * (length / n)


def cells(n, length):
    return (np.arange(n) + 0.5) * (length / n)


def inner(n, length):
    return np.arange(1, n + 1) * (length / (n + 1))


def up(u, axis):
    return np.roll(u, -1, axis)


def down(u, axis):
    return np.roll(u, 1, axis)


def lap(u, *h):
    return sum((up(u, a) - 2 * u + down(u, a)) / h[a] ** 2 for a in range(u.ndim))


def lap_mirrored(u, *h):
    p = np.pad(u, 1, mode="symmetric")
    rx = (p[2:, 1:-1] - 2 * u + p[:-2, 1:-1]) / h[0] ** 2
    return rx + (p[1:-1, 2:] - 2 * u + p[1:-1, :-2]) / h[1] ** 2


def center(u, axis, h):
    return (up(u, axis) - down(u, axis)) / (2 * h)


def grayscott():
    x, y = axes(periodic(48, 0.48), periodic(40, 0.4))
    inside = np.where((abs(x - 0.2) < 0.052) & (abs(y - 0.21) < 0.063), 1.0, 0.0)
    u, v = 1 - 0.5 * inside, 0.25 * inside + 0.01 * np.sin(20 * x) ** 2 * np.cos(30 * y) ** 2
    for _ in range(STEPS):
        r = u * v * v
        u, v = (u + 2e-5 * lap(u, 0.01, 0.01) - r + 0.037 * (1 - u),
                v + 1e-5 * lap(v, 0.01, 0.01) + r - 0.097 * v)
    return u, v


def burgers():
    h = 1 / 48, 1 / 40
    x, y = axes(periodic(48, 1), periodic(40, 1))
    u, v = np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y), 0.5 * np.cos(2 * np.pi * (x + y))

    def carried(w):
        gx = np.where(u > 0, w - down(w, 0), up(w, 0) - w) / h[0]
        gy = np.where(v > 0, w - down(w, 1), up(w, 1) - w) / h[1]
        return u * gx + v * gy
    for _ in range(STEPS):
        u, v = u + 0.002 * (0.002 * lap(u, *h) - carried(u)), v + 0.002 * (0.002 * lap(v, *h) - carried(v))
    return u, v


def life():
    i, j = axes(np.arange(48), np.arange(40))
    u = (7 * i * i + 13 * j * j * i + 5 * j) % 11 < 4
    for _ in range(STEPS):
        n = sum(np.roll(u, (a, b), (0, 1)).astype(int) for a in (-1, 0, 1) for b in (-1, 0, 1)) - u
        u = (n == 3) | u & (n == 2)
    return u.astype(float),


def sir():
    x, y = axes(cells(48, 1), cells(40, 0.8))
    i = 0.2 * np.exp(-50 * ((x - 0.3) ** 2 + (y - 0.4) ** 2))
    s, r, h = 1 - i, 0 * i, (1 / 48, 0.8 / 40)
    for _ in range(STEPS):
        new, well = 3 * s * i, 0.7 * i
        s, i, r = (s + 0.02 * (0.001 * lap_mirrored(s, *h) - new),
                   i + 0.02 * (0.001 * lap_mirrored(i, *h) + new - well),
                   r + 0.02 * (0.001 * lap_mirrored(r, *h) + well))
    return i, r, s  # fields are sorted: I, R, S


def shallow():
    a = 1 / 48, 1 / 40
    x, y = axes(periodic(48, 1), periodic(40, 1))
    h = 1 + 0.1 * np.exp(-80 * ((x - 0.4) ** 2 + (y - 0.5) ** 2))
    u, v = 0 * h, 0 * h
    for _ in range(STEPS):
        rates = [0.01 * lap(h, *a) - center(h * u, 0, a[0]) - center(h * v, 1, a[1])]
        for w, axis in ((u, 0), (v, 1)):
            rates.append(0.01 * lap(w, *a) - u * center(w, 0, a[0]) - v * center(w, 1, a[1])
                         - 9.81 * center(h, axis, a[axis]))
        h, u, v = (w + 0.0005 * f for w, f in zip((h, u, v), rates))
    return h, u, v


def wave():
    x, y, z = axes(inner(24, 1), inner(20, 1), inner(18, 1))
    u = np.sin(np.pi * x) * np.sin(2 * np.pi * y) * np.sin(np.pi * z)
    before = u
    for _ in range(STEPS):
        p = np.pad(u, 1)
        around = (p[2:, 1:-1, 1:-1] + p[:-2, 1:-1, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, :-2, 1:-1]
                  + p[1:-1, 1:-1, 2:] + p[1:-1, 1:-1, :-2])
        u, before = 2 * u - before + 0.2 * (around - 6 * u), u
    return u,


def schrodinger():
    h = 1 / 48, 1 / 40
    x, y = axes(periodic(48, 1), periodic(40, 1))
    potential = 500 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)
    psi, dt = np.exp(-100 * ((x - 0.4) ** 2 + (y - 0.5) ** 2) + 30j * x), 0.0002

    def rate(w):
        return -1j * (potential * w - 0.5 * lap(w, *h))
    for _ in range(STEPS):
        a = rate(psi)
        b = rate(psi + dt / 2 * a)
        c = rate(psi + dt / 2 * b)
        psi = psi + dt / 6 * (a + 2 * b + 2 * c + rate(psi + dt * c))
    return psi.imag, psi.real  # fields are sorted: im, re


def cahnhilliard():
    h = 1 / 48, 1 / 40
    x, y = axes(periodic(48, 1), periodic(40, 1))
    u = 0.1 * np.sin(14 * np.pi * x) * np.cos(10 * np.pi * y) + 0.02 * np.cos(6 * np.pi * (x + y))
    for _ in range(STEPS):
        u = u + 4e-6 * lap(u ** 3 - u - 0.001 * lap(u, *h), *h)
    return u,


def kleingordon():
    h, dt = (1 / 24, 1 / 20, 1 / 18), 0.01
    x, y, z = axes(periodic(24, 1), periodic(20, 1), periodic(18, 1))
    u = np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y) * np.sin(2 * np.pi * z)

    def force(w):
        return 0.5 * lap(w, *h) - w ** 3
    before = u - dt * 3 * np.cos(2 * np.pi * x) + dt ** 2 / 2 * force(u)
    for _ in range(STEPS):
        u, before = 2 * u - before + dt ** 2 * force(u), u
    return u,


fields = globals()[sys.argv[1]]()
assert len(fields) == len(sys.argv) - 2
for want, file in zip(fields, sys.argv[2:]):
    got = np.load(file)
    want = want.T if got.shape == want.T.shape else want  # files have x last
    print(np.abs(got - want).max() / max(1e-300, np.abs(want).max()))
