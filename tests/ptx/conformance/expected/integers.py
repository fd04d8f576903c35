"""Expected results of integer arithmetic, logic and bit fields, with Python's unbounded integers."""
from casefile import CaseFile, as_type, interesting, pairs, signed, triples, width

TYPES = ['u16', 's16', 'u32', 's32', 'u64', 's64']


def clamp(value, least, most):
    return max(least, min(most, value))


def saturated(value):
    return clamp(value, -2**31, 2**31 - 1)


def truncated(a, b):
    """Division as C has it."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def binary(cases, name, kind, compute, values=None, out=None):
    values = values or pairs(width(kind))
    rows = [((a, b), (compute(as_type(a, kind), as_type(b, kind)),)) for a, b in values]
    cases.case(name, f'{kind} {kind}', out or kind, f'{name} %o0, %i0, %i1;', rows)


def ternary(cases, name, kind, compute, third=None):
    rows = []
    for a, b, c in triples(width(kind)):
        c_kind = third or kind
        c = c * 0x100000001 if width(c_kind) > width(kind) else c
        rows.append(((a, b, c), (compute(as_type(a, kind), as_type(b, kind), as_type(c, c_kind)),)))
    cases.case(name, f'{kind} {kind} {third or kind}', third or kind, f'{name} %o0, %i0, %i1, %i2;', rows)


def arithmetic():
    cases = CaseFile('Integer arithmetic')
    for kind in TYPES:
        bits = width(kind)
        binary(cases, f'add.{kind}', kind, lambda a, b: a + b)
        binary(cases, f'sub.{kind}', kind, lambda a, b: a - b)
        binary(cases, f'mul.lo.{kind}', kind, lambda a, b: a * b)
        binary(cases, f'mul.hi.{kind}', kind, lambda a, b: (a * b) >> bits)
        binary(cases, f'min.{kind}', kind, min)
        binary(cases, f'max.{kind}', kind, max)
        ternary(cases, f'mad.lo.{kind}', kind, lambda a, b, c: a * b + c)
        ternary(cases, f'mad.hi.{kind}', kind, lambda a, b, c: ((a * b) >> bits) + c)
        ternary(cases, f'sad.{kind}', kind, lambda a, b, c: abs(a - b) + c)
        divisible = [(a, b) for a, b in pairs(bits, 40) if as_type(b, kind) != 0][:32]
        binary(cases, f'div.{kind}', kind, truncated, divisible)
        binary(cases, f'rem.{kind}', kind, lambda a, b: a - b * truncated(a, b), divisible)
    for kind in ('u16', 's16', 'u32', 's32'):
        double = kind[0] + str(2 * width(kind))
        binary(cases, f'mul.wide.{kind}', kind, lambda a, b: a * b, out=double)
        ternary(cases, f'mad.wide.{kind}', kind, lambda a, b, c: a * b + c, third=double)
    for kind in ('s16', 's32', 's64'):
        values = interesting(width(kind))
        for name, compute in (('abs', abs), ('neg', lambda a: -a)):
            rows = [((a,), (compute(as_type(a, kind)),)) for a in values]
            cases.case(f'{name}.{kind}', kind, kind, f'{name}.{kind} %o0, %i0;', rows)
    binary(cases, 'add.sat.s32', 's32', lambda a, b: saturated(a + b))
    binary(cases, 'sub.sat.s32', 's32', lambda a, b: saturated(a - b))
    ternary(cases, 'mad.hi.sat.s32', 's32', lambda a, b, c: saturated(((a * b) >> 32) + c))
    for kind in ('u32', 's32'):
        def low24(a, kind=kind):
            return signed(a, 24) if kind == 's32' else a & 0xffffff
        binary(cases, f'mul24.lo.{kind}', kind, lambda a, b: low24(a) * low24(b))
        binary(cases, f'mul24.hi.{kind}', kind, lambda a, b: (low24(a) * low24(b)) >> 16)
        ternary(cases, f'mad24.lo.{kind}', kind, lambda a, b, c: low24(a) * low24(b) + c)
        ternary(cases, f'mad24.hi.{kind}', kind, lambda a, b, c: ((low24(a) * low24(b)) >> 16) + c)
    packed(cases)
    return cases


def packed(cases):
    for kind in ('u16x2', 's16x2'):
        half = kind[:3]

        def by_halves(compute, half=half):
            def both(a, b):
                results = [compute(as_type(a >> s, half), as_type(b >> s, half)) & 0xffff for s in (0, 16)]
                return results[0] | results[1] << 16
            return both
        for name, compute in (('add', lambda a, b: a + b), ('min', min), ('max', max)):
            rows = [((a, b), (by_halves(compute)(a, b),)) for a, b in pairs(32)]
            cases.case(f'{name}.{kind}', 'u32 u32', 'u32', f'{name}.{kind} %o0, %i0, %i1;', rows)
    rows = [((a, b), (max(0, min(signed(a, 32), signed(b, 32))),)) for a, b in pairs(32)]
    cases.case('min.relu.s32', 's32 s32', 's32', 'min.relu.s32 %o0, %i0, %i1;', rows)
    rows = [((a, b), (max(0, max(signed(a, 32), signed(b, 32))),)) for a, b in pairs(32)]
    cases.case('max.relu.s32', 's32 s32', 's32', 'max.relu.s32 %o0, %i0, %i1;', rows)


def extended():
    cases = CaseFile('Extended precision: chains of carries')
    m32, m64 = 2**32 - 1, 2**64 - 1
    rows = [((a & m32, a >> 32, b & m32, b >> 32), ((a + b) & m32, ((a + b) >> 32) & m32, (a + b) >> 64))
            for a, b in pairs(64)]
    cases.case('add.cc.u32', 'u32 u32 u32 u32', 'u32 u32 u32',
               'add.cc.u32 %o0, %i0, %i2;\naddc.cc.u32 %o1, %i1, %i3;\naddc.u32 %o2, 0, 0;', rows)
    rows = [((a & m32, a >> 32, b & m32, b >> 32),
             ((a - b) & m32, ((a - b) >> 32) & m32, m32 if a < b else 0))
            for a, b in pairs(64)]
    cases.case('sub.cc.u32', 'u32 u32 u32 u32', 'u32 u32 u32',
               'sub.cc.u32 %o0, %i0, %i2;\nsubc.cc.u32 %o1, %i1, %i3;\nsubc.u32 %o2, 0, 0;', rows)
    rows = [((a, b, a ^ m64, b), ((a + (a ^ m64)) & m64, (b + b + ((a + (a ^ m64)) >> 64)) & m64))
            for a, b in pairs(64)]
    cases.case('add.cc.u64', 'u64 u64 u64 u64', 'u64 u64',
               'add.cc.u64 %o0, %i0, %i2;\naddc.u64 %o1, %i1, %i3;', rows)
    rows = [((a, b, b, a), ((a - b) & m64, (b - a - (1 if a < b else 0)) & m64)) for a, b in pairs(64)]
    cases.case('sub.cc.u64', 'u64 u64 u64 u64', 'u64 u64',
               'sub.cc.u64 %o0, %i0, %i2;\nsubc.u64 %o1, %i1, %i3;', rows)
    # A 64-bit by 32-bit product with an addend, 96 bits.
    rows = []
    for (a, b), (c, _) in zip(pairs(64), pairs(64, seed=5)):
        b &= m32
        total = a * b + c
        rows.append(((a & m32, a >> 32, b, c & m32, c >> 32),
                     (total & m32, (total >> 32) & m32, total >> 64)))
    cases.case('madc.u32', 'u32 u32 u32 u32 u32', 'u32 u32 u32', '''
        mad.lo.cc.u32 %o0, %i0, %i2, %i3;
        madc.hi.cc.u32 %o1, %i0, %i2, %i4;
        addc.u32 %o2, 0, 0;
        mad.lo.cc.u32 %o1, %i1, %i2, %o1;
        madc.hi.u32 %o2, %i1, %i2, %o2;''', rows)
    rows = []
    for (a, b), (c, e) in zip(pairs(64), pairs(64, seed=5)):
        total = signed(a, 64) * signed(b, 64) + c + (e << 64)
        rows.append(((a, b, c, e), (total & m64, (total >> 64) & m64)))
    cases.case('madc.s64', 's64 s64 s64 s64', 's64 s64',
               'mad.lo.cc.s64 %o0, %i0, %i1, %i2;\nmadc.hi.s64 %o1, %i0, %i1, %i3;', rows)
    return cases


def dots():
    cases = CaseFile('Dot products')
    for a_kind in ('u32', 's32'):
        for b_kind in ('u32', 's32'):
            def byte(value, index, kind):
                return as_type(value >> (8 * index), kind[0] + '8')

            def half(value, index, kind):
                return as_type(value >> (16 * index), kind[0] + '16')
            rows = [((a, b, c), (c + sum(byte(a, i, a_kind) * byte(b, i, b_kind) for i in range(4)),))
                    for a, b, c in triples(32)]
            name = f'dp4a.{a_kind}.{b_kind}'
            cases.case(name, 'b32 b32 b32', 'b32', f'{name} %o0, %i0, %i1, %i2;', rows)
            for mode, start in (('lo', 0), ('hi', 2)):
                rows = [((a, b, c),
                         (c + sum(half(a, i, a_kind) * byte(b, start + i, b_kind) for i in range(2)),))
                        for a, b, c in triples(32)]
                name = f'dp2a.{mode}.{a_kind}.{b_kind}'
                cases.case(name, 'b32 b32 b32', 'b32', f'{name} %o0, %i0, %i1, %i2;', rows)
    return cases
