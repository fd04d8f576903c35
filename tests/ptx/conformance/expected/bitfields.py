"""Expected results of logic, shifts, bit fields and byte permutation, bit by bit from the manual's
definitions."""
import random

from casefile import CaseFile, interesting, pairs, signed, triples, width


def logic(cases):
    for kind in ('b16', 'b32', 'b64'):
        bits = width(kind)
        for name, compute in (('and', lambda a, b: a & b), ('or', lambda a, b: a | b),
                              ('xor', lambda a, b: a ^ b)):
            rows = [((a, b), (compute(a, b),)) for a, b in pairs(bits)]
            cases.case(f'{name}.{kind}', f'{kind} {kind}', kind, f'{name}.{kind} %o0, %i0, %i1;', rows)
        rows = [((a,), (~a, 1 if a == 0 else 0)) for a in interesting(bits)]
        cases.case(f'not.{kind}', kind, f'{kind} {kind}', f'not.{kind} %o0, %i0;\ncnot.{kind} %o1, %i0;',
                   rows)
    rows = [((a, b), (a & b, a | b, a ^ b, 1 - a)) for a in (0, 1) for b in (0, 1)] * 8
    cases.case('logic.pred', 'pred pred', 'pred pred pred pred',
               'and.pred %o0, %i0, %i1;\nor.pred %o1, %i0, %i1;\nxor.pred %o2, %i0, %i1;\nnot.pred %o3, %i0;',
               rows)
    for table in (0x00, 0x1a, 0x40, 0x80, 0x96, 0xca, 0xe8, 0xfe, 0xff):
        def look(a, b, c, table=table):
            return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
                       for i in range(32))
        rows = [((a, b, c), (look(a, b, c),)) for a, b, c in triples(32)]
        cases.case(f'lop3.{table:#04x}', 'b32 b32 b32', 'b32', f'lop3.b32 %o0, %i0, %i1, %i2, {table:#x};',
                   rows)
    rows = []
    for (a, b, c), q in zip(triples(32), [0, 1] * 16):
        value = a & b & c & 3
        rows.append(((a & 3, b & 3, c & 3, q), (value, int(value != 0 and q), int(value != 0 or q))))
    cases.case('lop3.pred', 'b32 b32 b32 pred', 'b32 pred pred',
               'lop3.and.b32 %o0|%o1, %i0, %i1, %i2, 0x80, %i3;\n'
               'lop3.or.b32 %o0|%o2, %i0, %i1, %i2, 0x80, %i3;', rows)


AMOUNTS = [0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0xffffffff, 0x80000000, 100, 8]


def shifts(cases):
    for kind in ('b16', 'b32', 'b64'):
        bits = width(kind)
        rows = [((a, n), (a << min(n, bits),)) for a, n in zip(interesting(bits), AMOUNTS * 2)]
        cases.case(f'shl.{kind}', f'{kind} u32', kind, f'shl.{kind} %o0, %i0, %i1;', rows)
    for kind in ('u16', 'u32', 'u64', 's16', 's32', 's64', 'b32'):
        bits = width(kind)
        rows = [((a, n), ((signed(a, bits) if kind[0] == 's' else a) >> min(n, bits),))
                for a, n in zip(interesting(bits), AMOUNTS * 2)]
        cases.case(f'shr.{kind}', f'{kind} u32', kind, f'shr.{kind} %o0, %i0, %i1;', rows)
    for mode, amount in (('wrap', lambda n: n & 31), ('clamp', lambda n: min(n, 32))):
        rows = [((a, b, n), (((b << 32 | a) << amount(n)) >> 32, (b << 32 | a) >> amount(n)))
                for (a, b), n in zip(pairs(32), AMOUNTS * 2)]
        cases.case(f'shf.{mode}', 'b32 b32 u32', 'b32 b32',
                   f'shf.l.{mode}.b32 %o0, %i0, %i1, %i2;\nshf.r.{mode}.b32 %o1, %i0, %i1, %i2;', rows)


def counting(cases):
    for kind in ('b32', 'b64'):
        bits = width(kind)
        rows = [((a,), (bin(a).count('1'), bits - a.bit_length())) for a in interesting(bits)]
        cases.case(f'popc.clz.{kind}', kind, 'u32 u32', f'popc.{kind} %o0, %i0;\nclz.{kind} %o1, %i0;', rows)
        rows = [((a,), (int(f'{a:0{bits}b}'[::-1], 2),)) for a in interesting(bits)]
        cases.case(f'brev.{kind}', kind, kind, f'brev.{kind} %o0, %i0;', rows)
    for kind in ('u32', 's32', 'u64', 's64'):
        bits = width(kind)
        rows = []
        for a in interesting(bits):
            value = a if kind[0] == 'u' or not a >> (bits - 1) else ~a & ((1 << bits) - 1)
            top = value.bit_length() - 1
            rows.append(((a,), (top, -1 if top < 0 else bits - 1 - top)))
        cases.case(f'bfind.{kind}', kind, 'u32 u32',
                   f'bfind.{kind} %o0, %i0;\nbfind.shiftamt.{kind} %o1, %i0;', rows)
    rows = []
    source = random.Random(9)
    for _ in range(32):
        mask, base, offset = (source.getrandbits(32) & source.getrandbits(32), source.randrange(32),
                              source.randrange(-6, 7))
        if offset == 0:
            found = base if mask >> base & 1 else -1
        else:
            places = range(base, 32) if offset > 0 else range(base, -1, -1)
            hits = [i for i in places if mask >> i & 1]
            found = hits[abs(offset) - 1] if len(hits) >= abs(offset) else -1
        rows.append(((mask, base, offset), (found,)))
    rows[:4] = [((0xaaaaaaaa, 3, 1), (3,)), ((0xaaaaaaaa, 3, -1), (3,)), ((0xaaaaaaaa, 2, 1), (3,)),
                ((0xaaaaaaaa, 2, -1), (1,))]
    cases.case('fns.b32', 'b32 b32 s32', 'b32', 'fns.b32 %o0, %i0, %i1, %i2;', rows)


def fields(cases):
    source = random.Random(3)
    places = [(0, 0), (0, 32), (31, 1), (4, 8), (28, 8), (32, 4), (40, 40), (255, 255),
              (0, 64), (63, 1), (16, 255)]
    for kind in ('u32', 's32', 'u64', 's64'):
        bits = width(kind)
        rows = []
        for i, a in enumerate(interesting(bits)):
            pos, length = places[i] if i < len(places) else (source.randrange(bits),
                                                             source.randrange(bits + 1))
            sign = 0 if kind[0] == 'u' or length == 0 else a >> min(pos + length - 1, bits - 1) & 1
            value = sum((a >> (pos + k) & 1 if k < length and pos + k < bits else sign) << k
                        for k in range(bits))
            rows.append(((a, pos, length), (value,)))
        cases.case(f'bfe.{kind}', f'{kind} u32 u32', kind, f'bfe.{kind} %o0, %i0, %i1, %i2;', rows)
    for kind in ('b32', 'b64'):
        bits = width(kind)
        rows = []
        for i, (a, b) in enumerate(pairs(bits)):
            pos, length = places[i] if i < len(places) else (source.randrange(bits),
                                                             source.randrange(bits + 1))
            value = b
            for k in range(length):
                if pos + k < bits:
                    value = value & ~(1 << (pos + k)) | (a >> k & 1) << (pos + k)
            rows.append(((a, b, pos, length), (value,)))
        cases.case(f'bfi.{kind}', f'{kind} {kind} u32 u32', kind, f'bfi.{kind} %o0, %i0, %i1, %i2, %i3;',
                   rows)
    amounts = [0, 1, 4, 31, 32, 33, 64, 0xffffffff]
    for mode in ('clamp', 'wrap'):
        rows = []
        for a in amounts:
            for b in (0, 1, 5, 31):
                at, size = (a, b) if mode == 'clamp' else (a & 31, b & 31)
                value = 0 if at >= 32 else ((1 << min(size, 64)) - 1) << at
                rows.append(((a, b), (value,)))
        cases.case(f'bmsk.{mode}', 'b32 b32', 'b32', f'bmsk.{mode}.b32 %o0, %i0, %i1;', rows)
        for kind in ('u32', 's32'):
            rows = []
            for a, n in zip(interesting(32), amounts * 4):
                size = n if mode == 'clamp' else n & 31
                size = min(size, 32)
                value = 0 if size == 0 else (signed(a, size) if kind == 's32' else a & ((1 << size) - 1))
                rows.append(((a, n), (value,)))
            cases.case(f'szext.{mode}.{kind}', f'{kind} u32', kind, f'szext.{mode}.{kind} %o0, %i0, %i1;',
                       rows)


# The manual's table: for each mode the bytes of the result, highest first, for control values 0 to 3.
PERMUTATIONS = {
    'f4e': ['3210', '4321', '5432', '6543'], 'b4e': ['5670', '6701', '7012', '0123'],
    'rc8': ['0000', '1111', '2222', '3333'], 'ecl': ['3210', '3211', '3222', '3333'],
    'ecr': ['0000', '1110', '2210', '3210'], 'rc16': ['1010', '3232', '1010', '3232'],
}


def permutation(cases):
    def byte(a, b, index):
        return (b << 32 | a) >> (8 * index) & 0xff
    source = random.Random(4)
    rows = []
    for a, b in pairs(32):
        control = source.getrandbits(16)
        value = 0
        for i in range(4):
            selector = control >> (4 * i) & 0xf
            one = byte(a, b, selector & 7)
            if selector & 8:
                one = 0xff if one & 0x80 else 0
            value |= one << (8 * i)
        rows.append(((a, b, control), (value,)))
    cases.case('prmt.b32', 'b32 b32 b32', 'b32', 'prmt.b32 %o0, %i0, %i1, %i2;', rows)
    for mode, table in PERMUTATIONS.items():
        rows = []
        for i, (a, b) in enumerate(pairs(32)):
            value = 0
            for digit in table[i & 3]:
                value = value << 8 | byte(a, b, int(digit))
            rows.append(((a, b, i), (value,)))
        cases.case(f'prmt.b32.{mode}', 'b32 b32 b32', 'b32', f'prmt.b32.{mode} %o0, %i0, %i1, %i2;', rows)


def all_fields():
    cases = CaseFile('Logic, shifts and bit fields')
    logic(cases)
    shifts(cases)
    counting(cases)
    fields(cases)
    permutation(cases)
    return cases
