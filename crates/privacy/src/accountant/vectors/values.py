"""Writes values.txt: the formulas of the accountant with 60 digits. Needs mpmath 1.3."""
from mpmath import mp, mpf, ncdf, exp, erfc, nstr

mp.dps = 60


def delta(epsilon, mu):
    return ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * ncdf(-mu / 2 - epsilon / mu)


def epsilon(mu, most):
    low, high = mpf(0), mpf(mu) ** 2 + 40 * mpf(mu)
    for _ in range(180):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle, mu) > most else (low, middle)
    return high


print("# erfcx x value")
for x in "0 0.001 0.1 0.5 1 2 3.3 5 7.5 9.99 10 10.01 12 20 50 1000".split():
    x = mpf(float(x))
    print("erfcx", nstr(x, 25), nstr(exp(x * x) * erfc(x), 20))
print("# curve mu delta epsilon")
for mu in "0.0005 0.002 0.01 0.05 0.142211 0.25 0.5 1 1.7 3 5.3932 8 20 50 200".split():
    for d in "1e-2 1e-5 1e-6 1e-9 1e-15 1e-30".split():
        m, most = mpf(float(mu)), mpf(float(d))
        if delta(mpf(0), m) > most:
            print("curve", mu, d, nstr(epsilon(m, most), 20))
