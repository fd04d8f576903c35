"""Expected results of comparison and selection."""
import random

from casefile import CaseFile, as_type, interesting, pairs, signed, width
from floats import tuples
from formats import BF16, F16, F32, F64

INTEGER = {'eq': lambda a, b: a == b, 'ne': lambda a, b: a != b, 'lt': lambda a, b: a <
           b, 'le': lambda a, b: a <= b,
           'gt': lambda a, b: a > b, 'ge': lambda a, b: a >= b}
UNSIGNED = {'lo': INTEGER['lt'], 'ls': INTEGER['le'], 'hi': INTEGER['gt'], 'hs': INTEGER['ge']}


def order(f, a, b):
    """-1, 0, 1, or None when they cannot be compared."""
    if f.is_nan(a) or f.is_nan(b):
        return None

    def key(bits):
        magnitude = bits & ~f.sign
        return -magnitude if bits & f.sign else magnitude
    return (key(a) > key(b)) - (key(a) < key(b))


FLOAT = {
    'eq': lambda o: o == 0, 'ne': lambda o: o is not None and
    o != 0, 'lt': lambda o: o == -1, 'le': lambda o: o in (-1, 0),
    'gt': lambda o: o == 1, 'ge': lambda o: o in (0, 1), 'equ': lambda o: o in (None, 0),
    'neu': lambda o: o != 0,
    'ltu': lambda o: o in (None, -1), 'leu': lambda o: o != 1, 'gtu': lambda o: o in (None, 1),
    'geu': lambda o: o != -1,
    'num': lambda o: o is not None, 'nan': lambda o: o is None,
}
BOOLEAN = {'and': lambda t, c: t and c, 'or': lambda t, c: t or c, 'xor': lambda t, c: t != c}


def setp(cases):
    for kind in ('u16', 's16', 'u32', 's32', 'u64', 's64', 'b32', 'b64'):
        table = dict(INTEGER) if kind[0] != 'b' else {k: INTEGER[k] for k in ('eq', 'ne')}
        if kind[0] == 'u':
            table |= UNSIGNED
        rows = [((a, b), tuple(int(c(as_type(a, kind), as_type(b, kind))) for c in table.values()))
                for a, b in pairs(width(kind))]
        body = '\n'.join(f'setp.{name}.{kind} %o{i}, %i0, %i1;' for i, name in enumerate(table))
        cases.case(f'setp.{kind}', f'{kind} {kind}', ' '.join(['pred'] * len(table)), body, rows)
    for f in (F32, F64, F16, BF16):
        rows = [((a, b), tuple(int(c(order(f, a, b))) for c in FLOAT.values())) for a, b in tuples(f, 2, 31)]
        body = '\n'.join(f'setp.{name}.{f.name} %o{i}, %i0, %i1;' for i, name in enumerate(FLOAT))
        cases.case(f'setp.{f.name}', f'{f.name} {f.name}', ' '.join(['pred'] * len(FLOAT)), body, rows)
    f = F32
    small = [(1, 0), (0x80000001, 1), (0x007fffff, 0x00800000), (0, 0x80000000)] * 8
    rows = [((a, b), (int(order(f, f.flush(a), f.flush(b)) == 0),
                      int(order(f, f.flush(a), f.flush(b)) == -1))) for a, b in small]
    cases.case('setp.ftz.f32', 'f32 f32', 'pred pred',
               'setp.eq.ftz.f32 %o0, %i0, %i1;\nsetp.lt.ftz.f32 %o1, %i0, %i1;', rows)
    source = random.Random(32)
    for name, combine in BOOLEAN.items():
        rows = []
        for a, b in pairs(32):
            c = source.randrange(2)
            t = signed(a, 32) < signed(b, 32)
            rows.append(((a, b, c),
                         (int(combine(t, bool(c))), int(combine(not t, bool(c))), int(combine(t, not c)))))
        cases.case(f'setp.lt.{name}.s32', 's32 s32 pred', 'pred pred pred',
                   f'setp.lt.{name}.s32 %o0|%o1, %i0, %i1, %i2;\nsetp.lt.{name}.s32 %o2, %i0, %i1, !%i2;',
                   rows)


def packed(cases):
    for f in (F16, BF16):
        rows = []
        for (a, b), (c, d) in zip(tuples(f, 2, 33), tuples(f, 2, 34)):
            low, high = order(f, a, b), order(f, c, d)
            rows.append(((a | c << 16, b | d << 16),
                         (int(low == -1), int(high == -1), int(low is None), int(high is None))))
        cases.case(f'setp.{f.name}x2', 'b32 b32', 'pred pred pred pred',
                   f'setp.lt.{f.name}x2 %o0|%o1, %i0, %i1;\nsetp.nan.{f.name}x2 %o2|%o3, %i0, %i1;', rows)
        rows = []
        for (a, b), (c, d) in zip(tuples(f, 2, 33), tuples(f, 2, 34)):
            low, high = order(f, a, b) in (0, 1), order(f, c, d) in (0, 1)
            rows.append(((a | c << 16, b | d << 16),
                         (low * f.one | (high * f.one) << 16, low * 0xffff | high * 0xffff0000)))
        cases.case(f'set.ge.{f.name}x2', 'b32 b32', 'b32 b32',
                   f'set.ge.{f.name}x2.{f.name}x2 %o0, %i0, %i1;\nset.ge.u32.{f.name}x2 %o1, %i0, %i1;', rows)


def set_results(cases):
    for kind in ('s32', 'u64', 's16'):
        rows = []
        for a, b in pairs(width(kind)):
            t = as_type(a, kind) > as_type(b, kind)
            rows.append(((a, b), (-t, -t, F32.one if t else 0)))
        cases.case(f'set.gt.{kind}', f'{kind} {kind}', 'u32 s32 f32',
                   '\n'.join(f'set.gt.{to}.{kind} %o{i}, %i0, %i1;'
                             for i, to in enumerate(('u32', 's32', 'f32'))), rows)
    for f in (F32, F64):
        rows = []
        for a, b in tuples(f, 2, 35):
            t = order(f, a, b) in (None, -1)
            rows.append(((a, b), (-t, F32.one if t else 0)))
        cases.case(f'set.ltu.{f.name}', f'{f.name} {f.name}', 'u32 f32',
                   f'set.ltu.u32.{f.name} %o0, %i0, %i1;\nset.ltu.f32.{f.name} %o1, %i0, %i1;', rows)
    f = F16
    rows = []
    for a, b in tuples(f, 2, 36):
        t = order(f, a, b) == 0
        rows.append(((a, b), (f.one if t else 0, -t, -t)))
    cases.case('set.eq.f16', 'f16 f16', 'f16 u16 u32', 'set.eq.f16.f16 %o0, %i0, %i1;\n'
               'set.eq.u16.f16 %o1, %i0, %i1;\nset.eq.u32.f16 %o2, %i0, %i1;', rows)
    rows = []
    for i, (a, b) in enumerate(pairs(32)):
        t = a == b
        rows.append(((a, b, i & 1), (-int(t and bool(i & 1)), -int(t != bool(i & 1)))))
    cases.case('set.eq.boolean', 'u32 u32 pred', 'u32 u32',
               'set.eq.and.u32.u32 %o0, %i0, %i1, %i2;\nset.eq.xor.u32.u32 %o1, %i0, %i1, %i2;', rows)


def selection(cases):
    for kind in ('b16', 'b32', 'b64', 'f32', 'f64', 's32'):
        rows = [((a, b, i & 1), (a if i & 1 else b, b if i & 1 else a))
                for i, (a, b) in enumerate(pairs(width(kind)))]
        cases.case(f'selp.{kind}', f'{kind} {kind} pred', f'{kind} {kind}',
                   f'selp.{kind} %o0, %i0, %i1, %i2;\nselp.{kind} %o1, %i0, %i1, !%i2;', rows)
    for kind in ('u32', 's64', 'f64', 'b16'):
        rows = [((a, b, c), (a if signed(c, 32) >= 0 else b,))
                for (a, b), c in zip(pairs(width(kind)), interesting(32))]
        cases.case(f'slct.{kind}.s32', f'{kind} {kind} s32', kind, f'slct.{kind}.s32 %o0, %i0, %i1, %i2;',
                   rows)
    f = F32
    rows = []
    for (a, b), (c, _) in zip(pairs(32), tuples(f, 2, 37)):
        rows.append(((a, b, c),
                     (a if order(f, c, 0) in (0, 1) else b, a if order(f, f.flush(c), 0) in (0, 1) else b)))
    cases.case('slct.f32', 'u32 u32 f32', 'u32 u32',
               'slct.u32.f32 %o0, %i0, %i1, %i2;\nslct.ftz.u32.f32 %o1, %i0, %i1, %i2;', rows)


def all_comparisons():
    cases = CaseFile('Comparison and selection')
    setp(cases)
    packed(cases)
    set_results(cases)
    selection(cases)
    return cases
