"""Loads, stores, state spaces, initial values and atomic operations."""
import random
import struct

from casefile import CaseFile, as_type, interesting, pairs, signed, width
from formats import BF16, F16, F32, F64, add

BUFFER = '.global .align 16 .b8 buffer[4096];'
# %rd1: 64 bytes of the buffer for each thread.
MINE = 'mov.u64 %rd0, buffer;\nmul.wide.u32 %rd1, %thread, 64;\nadd.u64 %rd1, %rd0, %rd1;\n'


def scalars(cases):
    for kind in ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64', 'b8', 'f32', 'f64'):
        stored = f'b{max(16, width(kind))}'
        rows = [((a,), (as_type(a, kind),)) for a in interesting(width(stored))]
        cases.case(f'ld.st.{kind}', stored, stored, MINE + f'st.global.{kind} [%rd1+8], %i0;\n'
                   f'ld.global.{kind} %o0, [%rd1+8];', rows, module=BUFFER)
    # Narrow values in wide registers: stores truncate, loads extend as the type is signed or not.
    rows = []
    for a in interesting(64):
        rows.append(((a,), (a & 0xff, signed(a, 8), a & 0xffff, signed(a, 16), signed(a, 32), signed(a, 8))))
    cases.case('ld.extends', 'b64', 'b32 b32 b32 b64 b64 b16', MINE + '''
        st.global.u64 [%rd1], %i0;
        ld.global.u8 %o0, [%rd1];
        ld.global.s8 %o1, [%rd1];
        ld.global.u16 %o2, [%rd1];
        ld.global.s16 %o3, [%rd1];
        ld.global.s32 %o4, [%rd1];
        ld.global.s8 %o5, [%rd1];''', rows, module=BUFFER)
    rows = [((a, b), ((b & ~0xffff | a & 0xffff) & ~0xff0000 | (a & 0xff) << 16,)) for a, b in pairs(32)]
    cases.case('st.truncates', 'b32 b32', 'b32', MINE + '''
        st.global.u32 [%rd1], %i1;
        st.global.u16 [%rd1], %i0;
        st.global.u8 [%rd1+2], %i0;
        ld.global.u32 %o0, [%rd1];''', rows, module=BUFFER)


def vectors(cases):
    source = random.Random(41)
    for kind, count in (('b8', 4), ('b16', 2), ('b16', 4), ('b32', 2), ('b32', 4), ('b64', 2), ('f32', 4)):
        bits = width(kind)
        stored = f'b{max(16, bits)}'
        rows = []
        for _ in range(32):
            values = tuple(source.getrandbits(bits) for _ in range(count))
            rows.append((values, values[::-1]))
        ins = ', '.join(f'%i{i}' for i in range(count))
        outs = ', '.join(f'%o{count - 1 - i}' for i in range(count))
        body = (MINE + f'st.global.v{count}.{kind} [%rd1+16], {{{ins}}};\n'
                f'ld.global.v{count}.{kind} {{{outs}}}, [%rd1+16];')
        cases.case(f'ld.st.v{count}.{kind}', ' '.join([stored] * count), ' '.join([stored] * count),
                   body, rows, module=BUFFER)
    rows = [((a, b), (b, a)) for a, b in pairs(64)]
    cases.case('ld.v2.sink', 'b64 b64', 'b64 b64', MINE + '''
        st.global.v2.u64 [%rd1], {%i0, %i1};
        ld.global.v2.u64 {_, %o0}, [%rd1];
        ld.global.v2.u64 {%o1, _}, [%rd1];''', rows, module=BUFFER)
    rows = [((a | b << 64,), (a | b << 64, b | a << 64)) for a, b in pairs(64)]
    cases.case('b128', 'b128', 'b128 b128', MINE + '''
        st.global.b128 [%rd1], %i0;
        ld.global.b128 %o0, [%rd1];
        mov.b128 {%rd2, %rd3}, %i0;
        mov.b128 %o1, {%rd3, %rd2};''', rows, module=BUFFER)


def orders(cases):
    forms = [('st.volatile.global.u32', 'ld.volatile.global.u32'),
             ('st.relaxed.gpu.global.u32', 'ld.relaxed.sys.global.u32'),
             ('st.release.gpu.global.u32', 'ld.acquire.gpu.global.u32'),
             ('st.wb.global.u32', 'ld.ca.global.u32'),
             ('st.cg.global.u32', 'ld.cg.global.u32'), ('st.cs.global.u32', 'ld.cs.global.u32'),
             ('st.wt.global.u32', 'ld.cv.global.u32'),
             ('st.weak.global.u32', 'ld.weak.global.u32'),
             ('st.global.L1::no_allocate.u32', 'ld.global.L1::evict_last.L2::128B.u32'),
             ('st.mmio.relaxed.sys.global.u32', 'ld.mmio.relaxed.sys.global.u32'),
             ('st.u32', 'ldu.global.u32')]
    for index, (store, load) in enumerate(forms):
        rows = [((a,), (a,)) for a in interesting(32)]
        cases.case(f'ld.order.{index}', 'u32', 'u32', MINE + f'{store} [%rd1+4], %i0;\nmembar.gl;\n'
                   f'fence.sc.gpu;\n{load} %o0, [%rd1+4];', rows, module=BUFFER)
    rows = [((i,), (100 + i % 8,)) for i in range(32)]
    cases.case('ld.global.nc', 'u32', 'u32', '''
        mov.u64 %rd0, numbers;
        and.b32 %r0, %i0, 7;
        mul.wide.u32 %rd1, %r0, 4;
        add.u64 %rd1, %rd0, %rd1;
        prefetch.global.L2 [%rd1];
        ld.global.nc.u32 %o0, [%rd1];''', rows,
               module='.global .align 4 .u32 numbers[8] = {100, 101, 102, 103, 104, 105, 106, 107};')


def spaces(cases):
    source = random.Random(42)
    values = [source.getrandbits(32) for _ in range(64)]
    rows = [((values[i],), (values[63 - i],)) for i in range(64)]
    reverse = '''
        mul.lo.u32 %r1, %thread, 4;
        mov.u32 %r0, table;
        add.u32 %r1, %r0, %r1;
        st.shared.u32 [%r1], %i0;
        bar.sync 0;
        mul.lo.u32 %r2, %thread, 4;
        sub.u32 %r2, 252, %r2;
        add.u32 %r2, %r0, %r2;
        ld.shared.u32 %o0, [%r2];'''
    cases.case('shared.static', 'u32', 'u32', reverse, rows, module='.shared .align 4 .b8 table[256];')
    cases.case('shared.dynamic', 'u32', 'u32', reverse, rows, module='.extern .shared .align 16 .b8 table[];',
               shared=256)
    both = '.shared .align 4 .b8 first[12];\n.extern .shared .align 16 .b8 table[];'
    cases.case('shared.both', 'u32', 'u32', 'mov.u32 %r9, 7;\nst.shared.u32 [first+8], %r9;' + reverse,
               rows, module=both, shared=256)
    rows = [((values[i], i), (values[i], i + 5)) for i in range(32)]
    cases.case('local', 'u32 u32', 'u32 u32', '''
        .local .align 8 .b8 depot[64];
        and.b32 %r0, %i1, 7;
        mul.lo.u32 %r0, %r0, 4;
        mov.u64 %rd0, depot;
        cvt.u64.u32 %rd1, %r0;
        add.u64 %rd2, %rd0, %rd1;
        add.u32 %r2, %i1, 5;
        st.local.u32 [depot+32], %r2;
        st.local.u32 [%rd2], %i0;
        cvta.local.u64 %rd3, %rd2;
        ld.u32 %o0, [%rd3];
        ld.local.u32 %o1, [depot+32];''', rows)
    rows = [((i,), ([3, 1, 4, 1, 5, 9, 2, 6][i % 8], F32.encode(F64.decode(0x400921fb54442d18))))
            for i in range(32)]
    cases.case('const', 'u32', 'u32 f32', '''
        and.b32 %r0, %i0, 7;
        mul.wide.u32 %rd1, %r0, 4;
        mov.u64 %rd0, digits;
        add.u64 %rd1, %rd0, %rd1;
        ld.const.u32 %o0, [%rd1];
        ld.const.f32 %o1, [pi];''', rows,
               module='.const .align 4 .u32 digits[8] = {3, 1, 4, 1, 5, 9, 2, 6};\n'
                      '.const .f32 pi = 0f40490FDB;')
    rows = [((values[i],), (values[i], values[i] ^ 1, values[i] ^ 2, 1, 0, 0, 1, 0, 1)) for i in range(32)]
    cases.case('generic', 'u32', 'u32 u32 u32 pred pred pred pred pred pred', '''
        .local .align 4 .b8 depot[16];
        mul.wide.u32 %rd1, %thread, 4;
        mov.u64 %rd0, buffer;
        add.u64 %rd2, %rd0, %rd1;
        cvta.global.u64 %rd2, %rd2;
        mov.u64 %rd0, table;
        add.u64 %rd3, %rd0, %rd1;
        cvta.shared.u64 %rd3, %rd3;
        mov.u64 %rd4, depot;
        cvta.local.u64 %rd4, %rd4;
        xor.b32 %r1, %i0, 1;
        xor.b32 %r2, %i0, 2;
        st.u32 [%rd2], %i0;
        st.u32 [%rd3], %r1;
        st.u32 [%rd4+4], %r2;
        cvta.to.shared.u64 %rd5, %rd3;
        ld.u32 %o0, [%rd2];
        ld.shared.u32 %o1, [%rd5];
        ld.u32 %o2, [%rd4+4];
        isspacep.global %o3, %rd2;
        isspacep.shared %o4, %rd2;
        isspacep.local %o5, %rd3;
        isspacep.shared %o6, %rd3;
        isspacep.global %o7, %rd4;
        isspacep.local %o8, %rd4;''', rows, module=BUFFER + '\n.shared .align 4 .b8 table[128];')
    rows = [((values[i], i), (values[i] ^ (i % 3),)) for i in range(32)]
    cases.case('generic.mixed', 'u32 u32', 'u32', '''
        .local .align 4 .b8 depot[16];
        mul.wide.u32 %rd1, %thread, 4;
        mov.u64 %rd0, buffer;
        add.u64 %rd2, %rd0, %rd1;
        mov.u64 %rd0, table;
        add.u64 %rd3, %rd0, %rd1;
        cvta.shared.u64 %rd3, %rd3;
        mov.u64 %rd4, depot;
        cvta.local.u64 %rd4, %rd4;
        rem.u32 %r0, %i1, 3;
        setp.eq.u32 %p1, %r0, 1;
        selp.b64 %rd5, %rd3, %rd2, %p1;
        setp.eq.u32 %p2, %r0, 2;
        selp.b64 %rd5, %rd4, %rd5, %p2;
        xor.b32 %r1, %i0, %r0;
        st.u32 [%rd5], %r1;
        ld.u32 %o0, [%rd5];''', rows, module=BUFFER + '\n.shared .align 4 .b8 table[128];')


def initial_values(cases):
    half = struct.unpack('<H', struct.pack('<e', 1.5))[0]
    rows = [((), (0x030201ff, 0, F64.encode(F64.decode(0xc008000000000000)), half, 22, 1, 7))] * 4
    cases.case('initializers', '', 'u32 u32 f64 b16 u32 pred u32', '''
        ld.global.u32 %o0, [bytes];
        ld.global.u32 %o1, [bytes+4];
        ld.global.f64 %o2, [real];
        ld.global.b16 %o3, [half];
        ld.global.u32 %o4, [grid+20];
        ld.global.u64 %rd0, [pointer];
        mov.u64 %rd1, grid;
        add.u64 %rd1, %rd1, 8;
        cvta.global.u64 %rd1, %rd1;
        setp.eq.u64 %o5, %rd0, %rd1;
        ld.u32 %r1, [%rd0];
        sub.u32 %o6, %r1, 4;''', rows, module=f'''
.global .align 4 .b8 bytes[8] = {{255, 1, 2, 3}};
.global .f64 real = 0dC008000000000000;
.global .b16 half = {half};
.global .align 4 .u32 grid[2][3] = {{{{9, 10, 11}}, {{20, 21, 22}}}};
.global .u64 pointer = generic(grid) + 8;''')


# ---- atomic operations: what a thread finds in a place of its own, and what all make of a common one

def atomics():
    cases = CaseFile('Atomic operations and reductions')
    m = {32: 0xffffffff, 64: 2**64 - 1}
    operations = {
        'add': lambda a, b, s: a + b, 'and': lambda a, b, s: a & b, 'or': lambda a, b, s: a |
        b, 'xor': lambda a, b, s: a ^ b,
        'exch': lambda a, b, s: b, 'min': lambda a, b, s: min(a, b, key=lambda v: signed(v, s) if s else v),
        'max': lambda a, b, s: max(a, b, key=lambda v: signed(v, s) if s else v),
    }
    for operation, kinds in (('add', ('u32', 's32', 'u64')), ('and', ('b32', 'b64')), ('or', ('b32', 'b64')),
                             ('xor', ('b32', 'b64')),
                             ('exch', ('b32', 'b64')), ('min', ('u32', 's32', 'u64', 's64')),
                             ('max', ('u32', 's32', 'u64', 's64'))):
        for kind in kinds:
            bits = width(kind)
            rows = []
            for a, b in pairs(bits):
                rows.append(((a, b),
                             (a, operations[operation](a, b, bits if kind[0] == 's' else 0) & m[bits])))
            own_place(cases, f'{operation}.{kind}', kind, rows)
    rows = [((a, b), (a, 0 if a >= b else a + 1)) for a, b in pairs(32)]
    own_place(cases, 'inc.u32', 'u32', rows)
    rows = [((a, b), (a, b if a == 0 or a > b else a - 1)) for a, b in pairs(32)]
    own_place(cases, 'dec.u32', 'u32', rows)
    swaps(cases)
    floating(cases)
    together(cases)
    return cases


def own_place(cases, name, kind, rows, more=''):
    bits = f'b{width(kind)}'
    for space, base in (('global', 'buffer'), ('shared', 'table')):
        module = BUFFER if space == 'global' else '.shared .align 16 .b8 table[4096];'
        body = f'''
            mov.u64 %rd0, {base};
            mul.wide.u32 %rd1, %thread, 64;
            add.u64 %rd1, %rd0, %rd1;
            st.{space}.{bits} [%rd1], %i0;
            atom.{space}.{name} %o0, [%rd1], %i1;
            ld.{space}.{bits} %o1, [%rd1];'''
        cases.case(f'atom.{space}.{name}', f'{kind} {kind}', f'{kind} {kind}', body, rows, module=module)
    if 'exch' in name:
        return
    body = MINE + f'''
        cvta.global.u64 %rd1, %rd1;
        st.{bits} [%rd1], %i0;
        red.{name} [%rd1], %i1;
        ld.{bits} %o0, [%rd1];'''
    cases.case(f'red.{name}', f'{kind} {kind}', kind, body, [(given, (out[1],)) for given, out in rows],
               module=BUFFER)


def swaps(cases):
    for kind in ('b16', 'b32', 'b64'):
        rows = []
        for i, (a, b) in enumerate(pairs(width(kind))):
            compare = a if i & 1 else b
            rows.append(((a, compare, b), (a, b if compare == a else a)))
        body = (MINE + f'st.global.{kind} [%rd1], %i0;\natom.global.cas.{kind} %o0, [%rd1], %i1, %i2;\n'
                f'ld.global.{kind} %o1, [%rd1];')
        cases.case(f'atom.cas.{kind}', ' '.join([kind] * 3), f'{kind} {kind}', body, rows, module=BUFFER)
    rows = []
    for i, (a, b) in enumerate(pairs(64)):
        old, new = a | b << 64, b | a << 64
        compare = old if i & 1 else new
        rows.append(((old, compare, new), (old, new if compare == old else old)))
    body = (MINE + 'st.global.b128 [%rd1], %i0;\natom.global.cas.b128 %o0, [%rd1], %i1, %i2;\n'
            'ld.global.b128 %o1, [%rd1];')
    cases.case('atom.cas.b128', 'b128 b128 b128', 'b128 b128', body, rows, module=BUFFER)
    rows = [((given[0], given[2]), (given[0], given[2])) for given, _ in rows]
    body = (MINE + 'st.global.b128 [%rd1], %i0;\natom.global.exch.b128 %o0, [%rd1], %i1;\n'
            'ld.global.b128 %o1, [%rd1];')
    cases.case('atom.exch.b128', 'b128 b128', 'b128 b128', body, rows, module=BUFFER)


def floating(cases):
    from floats import tuples
    f = F32
    numbers = [(a, b) for a, b in tuples(f, 2, 51) if not f.is_nan(a) and not f.is_nan(b) and
               not f.is_nan(add(f, a, b))]
    for space, base, flush in (('global', 'buffer', f.flush), ('shared', 'table', lambda b: b)):
        module = BUFFER if space == 'global' else '.shared .align 16 .b8 table[4096];'
        rows = [((a, b), (a, flush(add(f, flush(a), flush(b))))) for a, b in numbers]
        cases.case(f'atom.{space}.add.f32', 'f32 f32', 'f32 f32', f'''
            mov.u64 %rd0, {base};
            mul.wide.u32 %rd1, %thread, 64;
            add.u64 %rd1, %rd0, %rd1;
            st.{space}.f32 [%rd1], %i0;
            atom.{space}.add.f32 %o0, [%rd1], %i1;
            ld.{space}.f32 %o1, [%rd1];''', rows, module=module,
                   about='manual: subnormals are flushed in global memory and kept in shared')
    f = F64
    rows = [((a, b), (a, add(f, a, b))) for a, b in tuples(f, 2, 52) if not f.is_nan(a) and not f.is_nan(b)]
    cases.case('atom.global.add.f64', 'f64 f64', 'f64 f64', MINE + 'st.global.f64 [%rd1], %i0;\n'
               'atom.global.add.f64 %o0, [%rd1], %i1;\nld.global.f64 %o1, [%rd1];',
               rows, module=BUFFER)
    for f in (F16, BF16):
        numbers = [(a, b) for a, b in tuples(f, 2, 53) if not f.is_nan(a) and not f.is_nan(b) and
                   not f.is_nan(add(f, a, b))]
        rows = [((a, b), (a, add(f, a, b))) for a, b in numbers]
        cases.case(f'atom.global.add.noftz.{f.name}', f'{f.name} {f.name}', f'{f.name} {f.name}',
                   MINE + f'st.global.b16 [%rd1], %i0;\natom.global.add.noftz.{f.name} %o0, [%rd1], %i1;\n'
                   'ld.global.b16 %o1, [%rd1];', rows, module=BUFFER)
        rows = []
        for (a, b), (c, d) in zip(numbers, reversed(numbers)):
            rows.append(((a | c << 16, b | d << 16), (a | c << 16, add(f, a, b) | add(f, c, d) << 16)))
        cases.case(f'atom.global.add.noftz.{f.name}x2', 'b32 b32', 'b32 b32',
                   MINE + f'st.global.b32 [%rd1], %i0;\natom.global.add.noftz.{f.name}x2 %o0, [%rd1], %i1;\n'
                   'ld.global.b32 %o1, [%rd1];', rows, module=BUFFER)


def together(cases):
    """All threads on one place; the order is not compared, the sum is."""
    values = [as_type(a, 'u32') for a, _ in pairs(32, 64, seed=9)]
    total = sum(values) & 0xffffffff
    rows = [((v,), (total,)) for v in values]
    cases.case('atom.together.shared', 'u32', 'u32', '''
        setp.eq.u32 %p1, %thread, 0;
        mov.u32 %r0, 0;
        @%p1 st.shared.u32 [sum], %r0;
        bar.sync 0;
        atom.shared.add.u32 %r1, [sum], %i0;
        bar.sync 0;
        ld.shared.u32 %o0, [sum];''', rows, module='.shared .u32 sum;')
    cases.case('red.together.global', 'u32', 'u32', '''
        red.relaxed.gpu.global.add.u32 [sum], %i0;
        membar.gl;
        bar.sync 0;
        ld.volatile.global.u32 %o0, [sum];''', rows, module='.global .u32 sum;')
    rows = [((v,), (64,)) for v in values]
    cases.case('atom.tickets', 'u32', 'u32', '''
        atom.global.inc.u32 %r0, [next], 1000;
        mul.wide.u32 %rd1, %r0, 4;
        mov.u64 %rd0, seen;
        add.u64 %rd1, %rd0, %rd1;
        red.global.add.u32 [%rd1], 1;
        membar.gl;
        bar.sync 0;
        ld.volatile.global.u32 %r1, [%rd1];
        setp.eq.u32 %p1, %r1, 1;
        bar.red.popc.u32 %o0, 0, %p1;''', rows, module='.global .u32 next;\n.global .align 4 .u32 seen[64];')


def accesses():
    cases = CaseFile('Loads, stores and state spaces')
    scalars(cases)
    vectors(cases)
    orders(cases)
    spaces(cases)
    initial_values(cases)
    moves(cases)
    return cases


def moves(cases):
    rows = [((a,), (a & 0xffffffff, a >> 32, (a >> 32) | (a & 0xffffffff) << 32, a & 0xffff, a >> 48))
            for a in interesting(64)]
    cases.case('mov.pack', 'b64', 'b32 b32 b64 b16 b16', '''
        mov.b64 {%o0, %o1}, %i0;
        mov.b64 %o2, {%o1, %o0};
        mov.b64 {%o3, _, _, %o4}, %i0;''', rows)
    rows = [((a,), (a & 0xffff, a >> 16, a & 0xff, (a >> 24 | a << 8))) for a in interesting(32)]
    cases.case('mov.halves', 'b32', 'b16 b16 b16 b32', '''
        mov.b32 {%o0, %o1}, %i0;
        and.b16 %o2, %o0, 255;
        shf.l.wrap.b32 %o3, %i0, %i0, 8;''', rows)
    rows = [((i,), (i, 1 << i, (1 << i) - 1, (2 << i) - 1, 0xffffffff & ~((1 << i) - 1),
                    0xffffffff & ~((2 << i) - 1))) for i in range(32)]
    cases.case('special.lanes', 'u32', 'u32 u32 u32 u32 u32 u32', '''
        mov.u32 %o0, %laneid;
        mov.u32 %o1, %lanemask_eq;
        mov.u32 %o2, %lanemask_lt;
        mov.u32 %o3, %lanemask_le;
        mov.u32 %o4, %lanemask_ge;
        mov.u32 %o5, %lanemask_gt;''', rows)
    rows = [((), (i, 0, 0, 64, 1, 1, 0, 0, 1, 1, 1)) for i in range(64)]
    cases.case('special.places', '', 'u32 u32 u32 u32 u32 u32 u32 u32 u32 pred pred', '''
        mov.u32 %o0, %tid.x;
        mov.u32 %o1, %tid.y;
        mov.u32 %o2, %tid.z;
        mov.u32 %o3, %ntid.x;
        mov.u32 %o4, %ntid.y;
        mov.u32 %o5, %nctaid.x;
        mov.u32 %o6, %ctaid.x;
        mov.u32 %o7, %ctaid.z;
        mov.u32 %o8, %nctaid.z;
        mov.u64 %rd0, %clock64;
        mov.u64 %rd1, %globaltimer;
        mov.u32 %r0, %smid;
        mov.u32 %r1, %nsmid;
        setp.lt.u32 %o9, %r0, %r1;
        mov.u64 %rd2, %clock64;
        setp.ge.u64 %o10, %rd2, %rd0;''', rows)
