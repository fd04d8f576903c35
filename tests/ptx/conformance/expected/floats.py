"""Expected results of floating-point arithmetic: exact fractions, rounded once."""
import math
import random
from fractions import Fraction

from casefile import CaseFile
from formats import (BF16, F16, F32, F64, add, divide, fused, maximum, minimum, multiply, negate, saturate,
                     square_root, subtract)

MODES = ['rn', 'rz', 'rm', 'rp']


def values(f):
    """Bit patterns worth trying, the same in every run."""
    top = f.infinity
    chosen = [0, f.sign, f.one, f.sign | f.one, 1, f.sign | 1, (1 << f.fraction_bits) - 1,
              1 << f.fraction_bits, top, f.sign | top,
              top - 1, f.sign | (top - 1), top | 1 << (f.fraction_bits - 1), f.one + 1, f.one - 1,
              f.one | 1 << (f.fraction_bits - 1)]
    source = random.Random(f.width * 7 + f.fraction_bits)
    near_one = [source.getrandbits(f.fraction_bits) + f.one + (source.randrange(-6, 7) << f.fraction_bits)
                for _ in range(24)]
    wild = [source.getrandbits(f.width) for _ in range(16)]
    return chosen, near_one, [w for w in wild if not f.is_nan(w)]


def tuples(f, size, seed):
    chosen, near, wild = values(f)
    source = random.Random(seed)
    rows = [tuple(source.choice(chosen) for _ in range(size)) for _ in range(12)]
    rows += [tuple(source.choice(near) ^ (f.sign if source.random() < .5 else 0) for _ in range(size))
             for _ in range(14)]
    rows += [tuple(source.choice(wild + near) for _ in range(size)) for _ in range(6)]
    return rows


def one(cases, name, f, size, compute, seed=1, sources=None, **extra):
    ins = ' '.join([f.name] * size)
    operands = ''.join(f', %i{i}' for i in range(size))
    rows = [(given, (compute(*given),)) for given in (sources or tuples(f, size, seed))]
    cases.case(name, ins, f.name, f'{name} %o0{operands};', rows, **extra)


def basic():
    cases = CaseFile('Floating-point arithmetic of .f32 and .f64 in all rounding modes')
    for f in (F32, F64):
        for mode in MODES:
            one(cases, f'add.{mode}.{f.name}', f, 2, lambda a, b: add(f, a, b, mode))
            one(cases, f'mul.{mode}.{f.name}', f, 2, lambda a, b: multiply(f, a, b, mode))
            one(cases, f'fma.{mode}.{f.name}', f, 3, lambda a, b, c: fused(f, a, b, c, mode))
            one(cases, f'div.{mode}.{f.name}', f, 2, lambda a, b: divide(f, a, b, mode))
            one(cases, f'rcp.{mode}.{f.name}', f, 1, lambda a: divide(f, f.one, a, mode))
            one(cases, f'sqrt.{mode}.{f.name}', f, 1, lambda a: square_root(f, a, mode))
        one(cases, f'sub.{f.name}', f, 2, lambda a, b: subtract(f, a, b))
        one(cases, f'mad.rn.{f.name}', f, 3, lambda a, b, c: fused(f, a, b, c))
        one(cases, f'min.{f.name}', f, 2, lambda a, b: minimum(f, a, b))
        one(cases, f'max.{f.name}', f, 2, lambda a, b: maximum(f, a, b))
        plain = [(a,) for a in sum(values(f), []) if not f.is_nan(a)][:32]
        one(cases, f'abs.{f.name}', f, 1, lambda a: a & ~f.sign, sources=plain)
        one(cases, f'neg.{f.name}', f, 1, lambda a: negate(f, a), sources=plain)
        one(cases, f'copysign.{f.name}', f, 2, lambda a, b: b & ~f.sign | a & f.sign)
        properties(cases, f)
    cancellation(cases)
    return cases


def properties(cases, f):
    def classes(a):
        magnitude = a & ~f.sign
        nan, infinite = magnitude > f.infinity, magnitude == f.infinity
        subnormal = 0 < magnitude < 1 << f.fraction_bits
        return (not nan and not infinite, infinite, not nan, nan, not nan and not infinite and not subnormal,
                subnormal)
    names = ['finite', 'infinite', 'number', 'notanumber', 'normal', 'subnormal']
    rows = [((a,), tuple(int(c) for c in classes(a))) for a in sum(values(f), [])[:32]]
    body = '\n'.join(f'testp.{name}.{f.name} %o{i}, %i0;' for i, name in enumerate(names))
    cases.case(f'testp.{f.name}', f.name, ' '.join(['pred'] * 6), body, rows)


def cancellation(cases):
    """A fused multiply-add keeps the product's low half: a*a - round(a*a)."""
    for f in (F32, F64):
        rows = []
        for a in values(f)[1]:
            square = multiply(f, a, a)
            rows.append(((a, negate(f, square)), (fused(f, a, a, negate(f, square)),)))
        cases.case(f'fma.keeps.{f.name}', f'{f.name} {f.name}', f.name,
                   f'fma.rn.{f.name} %o0, %i0, %i0, %i1;', rows)


def modified():
    cases = CaseFile('Floating point with .ftz, .sat, .NaN and .xorsign.abs')
    f = F32

    def ftz(compute):
        return lambda *given: f.flush(compute(*(f.flush(g) for g in given)))
    tiny = [(0x00000001, 0x00800000, 0x3f800000), (0x007fffff, 0x00000001, 0x80000001),
            (0x80400000, 0x3f800000, 0x00000000),
            (0x00800000, 0x3f000000, 0x00000000), (0x00800001, 0x80800000, 0x00000001),
            (0x80000001, 0x80000001, 0x80000000)]

    def some(size, seed):
        return [t[:size] for t in tiny] + tuples(f, size, seed)[:26]
    for name, size, compute in (('add', 2, add), ('sub', 2, subtract), ('mul', 2, multiply),
                                ('fma.rn', 3, fused)):
        one(cases, f'{name}.ftz.f32', f, size, ftz(lambda *g, c=compute: c(f.flushing(), *g)),
            sources=some(size, 3))
        one(cases, f'{name}.sat.f32', f, size,
            lambda *g, c=compute: saturate(f, c(f, *g)), sources=some(size, 4))
        one(cases, f'{name}.ftz.sat.f32', f, size,
            lambda *g, c=compute: saturate(f, ftz(lambda *h: c(f.flushing(), *h))(*g)), sources=some(size, 5))
    for mode in ('rz', 'rm', 'rp'):
        one(cases, f'add.{mode}.ftz.f32', f, 2, ftz(lambda a, b: add(f, a, b, mode)), sources=some(2, 6))
        one(cases, f'fma.{mode}.ftz.f32', f, 3, ftz(lambda a, b, c: fused(f.flushing(), a, b, c, mode)),
            sources=some(3, 6))
        one(cases, f'fma.{mode}.sat.f32', f, 3,
            lambda a, b, c: saturate(f, fused(f, a, b, c, mode)), sources=some(3, 7))
    one(cases, 'div.rn.ftz.f32', f, 2, ftz(lambda a, b: divide(f, a, b)), sources=some(2, 8))
    one(cases, 'sqrt.rn.ftz.f32', f, 1, ftz(lambda a: square_root(f, a)), sources=some(1, 8))
    one(cases, 'rcp.rn.ftz.f32', f, 1, ftz(lambda a: divide(f, f.one, a)), sources=some(1, 8))
    for name, compute in (('min', minimum), ('max', maximum)):
        one(cases, f'{name}.ftz.f32', f, 2, ftz(lambda a, b, c=compute: c(f, a, b)), sources=some(2, 9))
        one(cases, f'{name}.NaN.f32', f, 2, lambda a, b, c=compute: c(f, a, b, True), sources=some(2, 9))

        def magnitudes(a, b, c=compute):
            result = c(f, a & ~f.sign, b & ~f.sign)
            return result if f.is_nan(result) else result & ~f.sign | (a ^ b) & f.sign
        numbers = [(a, b) for a, b in some(2, 9) if not f.is_nan(a) and not f.is_nan(b)]
        one(cases, f'{name}.xorsign.abs.f32', f, 2, magnitudes, sources=numbers)
    return cases


# ---- 16-bit formats

def halves():
    cases = CaseFile('Arithmetic of .f16, .f16x2, .bf16 and .bf16x2')
    for f in (F16, BF16):
        operations = [('add', 2, add), ('sub', 2, subtract), ('mul', 2, multiply), ('fma.rn', 3, fused),
                      ('min', 2, minimum), ('max', 2, maximum)]
        for name, size, compute in operations:
            half(cases, f'{name}', f, size, lambda *g, c=compute: c(f, *g))
        for name, compute in (('min', minimum), ('max', maximum)):
            half(cases, f'{name}.NaN', f, 2, lambda a, b, c=compute: c(f, a, b, True))
        half(cases, 'fma.rn.relu', f, 3, lambda *g: relu(f, fused(f, *g)))
        numbers = [a for a in sum(values(f), []) if not f.is_nan(a)]
        rows = [((a,), (negate(f, a), a & ~f.sign)) for a in numbers[:32]]
        cases.case(f'neg.abs.{f.name}', f.name, f'{f.name} {f.name}',
                   f'neg.{f.name} %o0, %i0;\nabs.{f.name} %o1, %i0;', rows)
    f = F16
    half(cases, 'add.sat', f, 2, lambda a, b: saturate(f, add(f, a, b)))
    half(cases, 'fma.rn.sat', f, 3, lambda a, b, c: saturate(f, fused(f, a, b, c)))
    half(cases, 'add.ftz', f, 2, lambda a, b: f.flush(add(f, f.flush(a), f.flush(b))))
    half(cases, 'fma.rn.ftz', f, 3, lambda a, b, c: fused(f.flushing(), f.flush(a), f.flush(b), f.flush(c)))
    return cases


def relu(f, bits):
    return bits if f.is_nan(bits) else (0 if f.negative(bits) else bits)


def half(cases, name, f, size, compute):
    rows = [(given, (compute(*given),)) for given in tuples(f, size, 11)]
    operands = ''.join(f', %i{i}' for i in range(size))
    cases.case(f'{name}.{f.name}', ' '.join([f.name] * size), f.name, f'{name}.{f.name} %o0{operands};', rows)
    low, high = tuples(f, size, 12), tuples(f, size, 13)
    rows = []
    for a, b in zip(low, high):
        rows.append((tuple(x | y << 16 for x, y in zip(a, b)), (compute(*a) | compute(*b) << 16,)))
    cases.case(f'{name}.{f.name}x2', ' '.join(['b32'] * size), 'b32', f'{name}.{f.name}x2 %o0{operands};',
               rows)


# ---- approximate functions: what the manual promises, and where it is exact

def nearest(f, value):
    return f.encode(Fraction(value)) if math.isfinite(value) else f.encode('inf' if value > 0 else '-inf')


def decoded(f, bits):
    return float(f.decode(bits))


def approximate():
    cases = CaseFile('Approximate functions, within the error that the manual states')
    f = F32
    source = random.Random(21)

    def floats(least, most, count=24):
        return [f.encode(Fraction(source.uniform(least, most))) for _ in range(count)]
    inf, ninf, nan = f.infinity, f.sign | f.infinity, f.nan

    def function(name, about, tolerance, given, compute, exact):
        rows = [((a,), (nearest(f, compute(decoded(f, a))),))
                for a in given] + [((a,), (b,)) for a, b in exact]
        cases.case(name, 'f32', 'f32', f'{name} %o0, %i0;', rows, tolerance=tolerance, about=about)
    both = floats(0.001, 4000) + [negate(f, a) for a in floats(0.001, 4000, 4)]
    function('rcp.approx.f32', 'manual: 1 ulp', '1 ulp', both, lambda x: 1 / x,
             [(0, inf), (f.sign, ninf), (inf, 0), (ninf, f.sign), (nan, nan)])
    function('rcp.approx.ftz.f32', 'manual: 1 ulp', '1 ulp', both, lambda x: 1 / x,
             [(1, inf), (f.sign | 1, ninf), (inf, 0), (0x7e800001, 0), (nan, nan)])
    function('sqrt.approx.f32', 'manual: relative 2^-23', '0x1p-23 relative', floats(0.001, 4000), math.sqrt,
             [(0, 0), (f.sign, f.sign), (inf, inf), (ninf, nan), (f.sign | f.one, nan), (nan, nan)])
    function('sqrt.approx.ftz.f32', 'manual: relative 2^-23', '0x1p-23 relative',
             floats(0.001, 4000), math.sqrt,
             [(1, 0), (f.sign | 1, f.sign), (inf, inf)])
    function('rsqrt.approx.f32', 'manual: relative 2^-22.9', '0x1.13p-23 relative', floats(0.001, 4000),
             lambda x: 1 / math.sqrt(x),
             [(0, inf), (f.sign, ninf), (inf, 0), (ninf, nan), (f.sign | f.one, nan), (nan, nan)])
    function('rsqrt.approx.ftz.f32', 'manual: relative 2^-22.9', '0x1.13p-23 relative', floats(0.001, 4000),
             lambda x: 1 / math.sqrt(x),
             [(1, inf), (f.sign | 1, ninf)])
    angles = floats(-math.pi, math.pi, 26)
    function('sin.approx.f32', 'manual: absolute 2^-20.5 in [-pi, pi]', '0x1.6ap-21 absolute',
             angles, math.sin,
             [(0, 0), (f.sign, f.sign), (inf, nan), (ninf, nan), (nan, nan)])
    function('cos.approx.f32', 'manual: absolute 2^-20.5 in [-pi, pi]', '0x1.6ap-21 absolute',
             angles, math.cos,
             [(0, f.one), (f.sign, f.one), (inf, nan), (ninf, nan), (nan, nan)])
    function('sin.approx.ftz.f32', 'manual: absolute 2^-20.5 in [-pi, pi]', '0x1.6ap-21 absolute', angles,
             math.sin, [(1, 0), (f.sign | 1, f.sign)])
    function('lg2.approx.f32', 'manual: absolute 2^-22 in (0.5, 2)', '0x1p-22 absolute',
             floats(0.501, 1.999), math.log2,
             [(0, ninf), (f.sign, ninf), (inf, inf), (ninf, nan), (f.sign | f.one, nan),
              (nan, nan), (f.one, 0)])
    function('lg2.approx.ftz.f32', 'manual: relative 2^-22 elsewhere', '0x1p-22 relative',
             floats(3, 1e6), math.log2,
             [(1, ninf), (f.sign | 1, ninf)])
    function('ex2.approx.f32', 'manual: 2 ulp', '2 ulp', floats(-20, 20), lambda x: 2.0 ** x,
             [(0, f.one), (f.sign, f.one), (inf, inf), (ninf, 0), (nan, nan)])
    function('ex2.approx.ftz.f32', 'manual: 2 ulp', '2 ulp', floats(-20, 20),
             lambda x: 2.0 ** x, [(1, f.one), (0xc3020000, 0), (ninf, 0)])
    function('tanh.approx.f32', 'manual: relative 2^-11', '0x1p-11 relative', floats(-4, 4), math.tanh,
             [(0, 0), (f.sign, f.sign), (inf, f.one), (ninf, f.sign | f.one), (nan, nan)])
    divisions(cases, floats)
    small_functions(cases)
    return cases


def divisions(cases, floats):
    f = F32
    pairs = list(zip(floats(-1000, 1000), floats(0.01, 1000)))
    for name in ('div.approx.f32', 'div.full.f32', 'div.approx.ftz.f32', 'div.full.ftz.f32'):
        rows = [((a, b), (divide(f, a, b),)) for a, b in pairs]
        rows += [((f.one, 0), (f.infinity,)), ((0, 0), (f.nan,)), ((f.infinity, f.infinity), (f.nan,)),
                 ((f.one, f.infinity), (0,))]
        if 'approx' in name:   # beyond 2^126
            rows += [((f.infinity, 0x7f000000), (f.nan,)), ((f.one, 0x7f000000), (0,))]
        cases.case(name, 'f32 f32', 'f32', f'{name} %o0, %i0, %i1;', rows, tolerance='2 ulp',
                   about='manual: 2 ulp')
    f = F64
    given = [f.encode(Fraction(x)) for x in (1.0, 3.0, 0.1, 12345.678, 2.0 ** 40, 1e-5)]
    for name, compute in (('rcp.approx.ftz.f64', lambda x: 1 / x),
                          ('rsqrt.approx.ftz.f64', lambda x: 1 / math.sqrt(x))):
        rows = [((a,), (nearest(f, compute(decoded(f, a))),)) for a in given]
        rows += [((0,), (f.infinity,)), ((f.sign,), (f.sign | f.infinity,)), ((f.infinity,), (0,))]
        cases.case(name, 'f64', 'f64', f'{name} %o0, %i0;', rows, tolerance='0x1p-19 relative',
                   about='manual: 20 bits')
    rows = [((a,), (nearest(f, 1 / math.sqrt(decoded(f, a))),)) for a in given]
    cases.case('rsqrt.approx.f64', 'f64', 'f64', 'rsqrt.approx.f64 %o0, %i0;', rows,
               tolerance='0x1p-22 relative', about='manual: relative 2^-22')


def small_functions(cases):
    source = random.Random(22)
    for f, ftz in ((F16, ''), (BF16, '.ftz')):
        given = [f.encode(Fraction(source.uniform(-6, 6))) for _ in range(24)]
        rows = [((a,), (nearest(f, 2.0 ** decoded(f, a)),))
                for a in given] + [((0,), (f.one,)), ((f.infinity,), (f.infinity,)),
                                   ((f.sign | f.infinity,), (0,))]
        bound = '0x1.d5p-10 relative' if f is F16 else '0x1p-7 relative'
        cases.case(f'ex2.approx{ftz}.{f.name}', f.name, f.name, f'ex2.approx{ftz}.{f.name} %o0, %i0;',
                   rows, tolerance=bound,
                   about='manual: relative 2^-9.9 (f16), 2^-7 (bf16)')
        rows = [((a,), (nearest(f, math.tanh(decoded(f, a))),)) for a in given] + [((0,), (0,)),
                                                                                   ((f.infinity,), (f.one,))]
        bound = '0x1.04p-11 absolute' if f is F16 else '0x1p-8 absolute'
        cases.case(f'tanh.approx.{f.name}', f.name, f.name, f'tanh.approx.{f.name} %o0, %i0;',
                   rows, tolerance=bound,
                   about='manual: absolute 2^-10.987 (f16), 2^-8 (bf16)')
