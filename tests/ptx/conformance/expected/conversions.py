"""Expected results of cvt: integers and fractions, rounded and clamped once."""
import random
from fractions import Fraction

from casefile import CaseFile, as_type, interesting, signed, width
from floats import relu, values
from formats import BF16, F16, F32, F64, TF32, saturate, to_integral

INTEGERS = ['u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64']


def register(kind):
    """Bytes live in 16-bit registers."""
    return kind[0] + '16' if width(kind) == 8 else kind


def extended(value, kind):
    return as_type(value, kind)


def limits(kind):
    bits = width(kind)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == 's' else (0, (1 << bits) - 1)


def between_integers(cases):
    for to in INTEGERS:
        for source in INTEGERS:
            if to == source and width(to) > 16:
                continue
            rows = [((a,), (extended(as_type(a, source), to),)) for a in interesting(width(register(source)))]
            cases.case(f'cvt.{to}.{source}', register(source), register(to), f'cvt.{to}.{source} %o0, %i0;',
                       rows)
    for to, source in (('u8', 's32'), ('s8', 's32'), ('u16', 's64'), ('s16', 'u32'), ('s32', 's64'),
                       ('u32', 's32'), ('s32', 'u32'), ('u64', 's64')):
        least, most = limits(to)
        rows = [((a,), (max(least, min(most, as_type(a, source))),)) for a in interesting(width(source))]
        cases.case(f'cvt.sat.{to}.{source}', source, register(to), f'cvt.sat.{to}.{source} %o0, %i0;', rows)
    # A register wider than the type is filled with the sign or with zeros.
    rows = [((a,), (signed(a, 8) & 0xffffffff, a & 0xff)) for a in interesting(32)]
    cases.case('cvt.wide.register', 'b32', 'b32 b32', 'cvt.s8.s32 %o0, %i0;\ncvt.u8.u32 %o1, %i0;', rows)


def from_integers(cases):
    for f in (F16, BF16, F32, F64):
        for source in ('u32', 's32', 'u64', 's64', 's16', 'u8'):
            for mode in ('rn', 'rz', 'rm', 'rp'):
                if (mode in ('rm', 'rp') and
                    source not in ('s32', 'u64')) or (f is BF16 and (width(source) < 16 or mode != 'rn')):
                    continue
                rows = [((a,), (f.encode(Fraction(as_type(a, source)), mode),))
                        for a in interesting(width(register(source)))]
                cases.case(f'cvt.{mode}.{f.name}.{source}', register(source), f.name,
                           f'cvt.{mode}.{f.name}.{source} %o0, %i0;', rows)


def integer_of(f, bits, mode, to):
    value = f.decode(bits)
    least, most = limits(to)
    if value == 'nan':
        return 1 << (width(to) - 1) if f is F64 or width(to) == 64 else 0
    if isinstance(value, str):
        return most if value == 'inf' else least
    return max(least, min(most, to_integral(value, mode)))


def float_sources(f):
    source = random.Random(5)
    exact = [Fraction(n, 4) for n in (1, 2, 3, 5, 6, 7, 10, -1, -2, -3, -6, -10)]
    large = [Fraction(2) ** 31, -Fraction(2) ** 31, Fraction(2) ** 32, Fraction(2) ** 63, Fraction(127),
             Fraction(-129), Fraction(300)]
    given = [f.encode(x) for x in exact + large] + [f.nan if f is not F64 else 0x7ff8000000000000, f.infinity,
                                                    f.sign | f.infinity, 0, f.sign, 1]
    return given + [f.encode(Fraction(source.uniform(-1e5, 1e5))) for _ in range(32 - len(given))]


def to_integers(cases):
    for f in (F16, BF16, F32, F64):
        for to in ('s32', 'u32', 's64', 'u64', 's16', 'u8', 's8'):
            if f is BF16 and width(to) < 16:
                continue
            for mode in ('rni', 'rzi', 'rmi', 'rpi'):
                if mode in ('rmi', 'rpi') and to not in ('s32', 'u64'):
                    continue
                given = float_sources(f)
                if width(to) < 32:
                    given = [g for g in given if not f.is_nan(g)]
                rows = [((a,), (integer_of(f, a, mode[:2], to),)) for a in given]
                cases.case(f'cvt.{mode}.{to}.{f.name}', f.name, register(to),
                           f'cvt.{mode}.{to}.{f.name} %o0, %i0;', rows)
    f = F32
    rows = [((a,), (integer_of(f, f.flush(a), 'rp', 's32'),)) for a in float_sources(f) + [0x007fffff]]
    cases.case('cvt.rpi.ftz.s32.f32', 'f32', 's32', 'cvt.rpi.ftz.s32.f32 %o0, %i0;', rows)


def converted(to, f, a, mode):
    """Which NaN comes of another format's PTX leaves open: an H200 keeps the upper bits of these."""
    if f in (F64, BF16) and f.is_nan(a):
        return 'nan'
    return to.encode(f.decode(a), mode, f.negative(a))


def between_floats(cases):
    narrowing = [(F32, F64), (F16, F32), (F16, F64), (BF16, F32)]
    for to, f in narrowing:
        for mode in ('rn', 'rz') if to is BF16 else ('rn', 'rz', 'rm', 'rp'):
            if f is F64 and to is F16 and mode not in ('rn', 'rz'):
                continue
            rows = [((a,), (converted(to, f, a, mode),)) for a in narrow_sources(to, f)]
            cases.case(f'cvt.{mode}.{to.name}.{f.name}', f.name, to.name,
                       f'cvt.{mode}.{to.name}.{f.name} %o0, %i0;', rows)
    for to, f in ((F64, F32), (F32, F16), (F64, F16), (F32, BF16)):
        rows = [((a,), (converted(to, f, a, 'rn'),)) for a in sum(values(f), [])[:32]]
        cases.case(f'cvt.{to.name}.{f.name}', f.name, to.name, f'cvt.{to.name}.{f.name} %o0, %i0;', rows)
    for f in (F16, F32, F64):
        for mode in ('rni', 'rzi', 'rmi', 'rpi'):
            rows = []
            for a in float_sources(f):
                value = f.decode(a)
                rows.append(((a,), (f.encode(value if isinstance(value, str)
                                             else to_integral(value, mode[:2]), 'rn', f.negative(a)),)))
            cases.case(f'cvt.{mode}.{f.name}.{f.name}', f.name, f.name,
                       f'cvt.{mode}.{f.name}.{f.name} %o0, %i0;', rows)
    f = F32
    rows = [((a,), (saturate(f, a),)) for a in float_sources(f)]
    cases.case('cvt.sat.f32.f32', 'f32', 'f32', 'cvt.sat.f32.f32 %o0, %i0;', rows)
    rows = [((a,), (f.flush(a) if not f.is_nan(a) else f.nan,)) for a in sum(values(f), [])[:32]]
    cases.case('cvt.ftz.f32.f32', 'f32', 'f32', 'cvt.ftz.f32.f32 %o0, %i0;', rows)
    rows = [((a,), (saturate(f, f.encode(F64.decode(a))),)) for a in narrow_sources(f, F64)]
    cases.case('cvt.rn.sat.f32.f64', 'f64', 'f32', 'cvt.rn.sat.f32.f64 %o0, %i0;', rows)


def narrow_sources(to, f):
    """Values of f on, beside and between those of the narrower format."""
    source = random.Random(8)
    given = [0, f.sign, f.infinity, f.sign | f.infinity, f.nan if f is not F64 else 0x7ff8000000000000]
    one_below = f.encode(to.decode(to.infinity - 1))
    given += [one_below, one_below + 1, one_below | f.sign,
              f.encode(2 * to.decode(to.infinity - 1) - to.decode(to.infinity - 2))]
    for _ in range(23):
        bits = source.getrandbits(to.width - 1) % to.infinity
        if source.random() < .3:
            bits %= 1 << (to.fraction_bits + 1)   # subnormal, or just not
        value, above = to.decode(bits), to.decode(bits + 1)
        if isinstance(above, str):
            above = value
        middle = value + (above - value) * source.choice([Fraction(0), Fraction(1, 4),
                                                          Fraction(1, 2), Fraction(3, 4)])
        given.append(f.encode(middle if source.random() < .5 else -middle))
    return given


def special_forms(cases):
    f = F32
    for to in (F16, BF16):
        given = narrow_sources(to, f)
        pairs = list(zip(given, reversed(given)))
        for mode in ('rn', 'rz'):
            for more, change in (('', lambda b: b), ('.relu', lambda b, to=to: relu(to, b))):
                def convert(a, mode=mode, change=change, to=to):
                    return change(to.encode(f.decode(a), mode, f.negative(a)))
                name = f'cvt.{mode}{more}.{to.name}x2.f32'
                cases.case(name, 'f32 f32', 'b32', f'{name} %o0, %i0, %i1;',
                           [((a, b), (convert(a) << 16 | convert(b),)) for a, b in pairs])
        rows = [((a,), (relu(to, to.encode(f.decode(a), 'rn', f.negative(a))),)) for a in given]
        cases.case(f'cvt.rn.relu.{to.name}.f32', 'f32', to.name, f'cvt.rn.relu.{to.name}.f32 %o0, %i0;', rows)
    for mode in ('rna', 'rn', 'rz'):
        given = [a for a in narrow_sources(TF32_WITH_NAN, f) if not f.is_nan(a)]
        rows = [((a,), (TF32.encode(f.decode(a), mode, f.negative(a)) << 13,)) for a in given]
        cases.case(f'cvt.{mode}.tf32.f32', 'f32', 'b32', f'cvt.{mode}.tf32.f32 %o0, %i0;', rows)
    source = random.Random(6)
    words = [(source.choice(interesting(32)), source.choice(interesting(32)), source.getrandbits(32))
             for _ in range(32)]
    for to in ('u16', 's16'):
        least, most = limits(to)
        rows = []
        for a, b, _ in words:
            high, low = (max(least, min(most, signed(x, 32))) & 0xffff for x in (a, b))
            rows.append(((a, b), (high << 16 | low,)))
        cases.case(f'cvt.pack.{to}', 's32 s32', 'b32', f'cvt.pack.sat.{to}.s32 %o0, %i0, %i1;', rows)
    for to in ('u8', 's8'):
        least, most = limits(to)
        rows = []
        for a, b, c in words:
            high, low = (max(least, min(most, signed(x, 32))) & 0xff for x in (a, b))
            rows.append(((a, b, c), (c << 16 | high << 8 | low,)))
        cases.case(f'cvt.pack.{to}', 's32 s32 b32', 'b32', f'cvt.pack.sat.{to}.s32.b32 %o0, %i0, %i1, %i2;',
                   rows)


class WithNan:
    """tf32, whose NaN is not compared here."""
    def __getattr__(self, name):
        return getattr(TF32, name)


TF32_WITH_NAN = WithNan()


def integer_conversions():
    cases = CaseFile('Conversions between integers')
    between_integers(cases)
    return cases


def float_conversions():
    cases = CaseFile('Conversions from and to floating point')
    from_integers(cases)
    to_integers(cases)
    between_floats(cases)
    special_forms(cases)
    return cases

