"""Control flow, calls, barriers and instructions of a whole warp: small programs, followed by hand in Python.

It is one file: a table of cases by section, of which no function calls another section's.
"""
import random

from casefile import CaseFile, interesting, pairs, signed


def flow():
    cases = CaseFile('Control flow')
    rows = [((n,), (n * (n + 1) // 2, n)) for n in (i * 7 % 33 for i in range(32))]
    cases.case('loop.divergent', 'u32', 'u32 u32', '''
        mov.u32 %o0, 0;
        mov.u32 %o1, 0;
    LOOP:
        setp.ge.u32 %p1, %o1, %i0;
        @%p1 bra DONE;
        add.u32 %o1, %o1, 1;
        add.u32 %o0, %o0, %o1;
        bra LOOP;
    DONE:''', rows)

    def collatz(n):
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n // 2
            steps += 1
        return steps
    rows = [((n,), (collatz(n),)) for n in range(1, 33)]
    cases.case('loop.collatz', 'u32', 'u32', '''
        mov.u32 %o0, 0;
        mov.u32 %r0, %i0;
    LOOP:
        setp.eq.u32 %p1, %r0, 1;
        @%p1 bra DONE;
        and.b32 %r1, %r0, 1;
        setp.eq.u32 %p2, %r1, 0;
        add.u32 %o0, %o0, 1;
        @%p2 bra EVEN;
        mad.lo.u32 %r0, %r0, 3, 1;
        bra.uni LOOP;
    EVEN:
        shr.u32 %r0, %r0, 1;
        bra.uni LOOP;
    DONE:''', rows)
    nested(cases)
    tables(cases)
    exits(cases)
    return cases


def nested(cases):
    rows = []
    for a in range(32):
        value = 1 if a & 1 else 2
        value = value * 10 + (3 if a & 2 and a & 1 else 4 if a & 1 else 5)
        value = value * 10 + (6 if a > 20 else 7)
        rows.append(((a,), (value,)))
    cases.case('branch.nested', 'u32', 'u32', '''
        and.b32 %r0, %i0, 1;
        and.b32 %r1, %i0, 2;
        setp.ne.u32 %p1, %r0, 0;
        setp.ne.u32 %p2, %r1, 0;
        setp.gt.u32 %p3, %i0, 20;
        mov.u32 %o0, 2;
        @!%p1 bra ELSE;
        mov.u32 %o0, 1;
        @!%p2 bra INNER;
        mad.lo.u32 %o0, %o0, 10, 3;
        bra JOIN;
    INNER:
        mad.lo.u32 %o0, %o0, 10, 4;
        bra JOIN;
    ELSE:
        mad.lo.u32 %o0, %o0, 10, 5;
    JOIN:
        mul.lo.u32 %o0, %o0, 10;
        @%p3 add.u32 %o0, %o0, 6;
        @!%p3 add.u32 %o0, %o0, 7;''', rows)
    rows = []
    for limit in range(32):
        total = 0
        for i in range(10):
            for j in range(10):
                if j > limit % 5:
                    break
                if (i + j) % 3 == limit % 3:
                    continue
                total += i * j + 1
            if total > 40 + limit:
                break
        rows.append(((limit,), (total,)))
    cases.case('loop.break.continue', 'u32', 'u32', '''
        rem.u32 %r10, %i0, 5;
        rem.u32 %r11, %i0, 3;
        add.u32 %r12, %i0, 40;
        mov.u32 %o0, 0;
        mov.u32 %r0, 0;
    OUTER:
        setp.ge.u32 %p1, %r0, 10;
        @%p1 bra DONE;
        mov.u32 %r1, 0;
    INNER:
        setp.ge.u32 %p2, %r1, 10;
        @%p2 bra AFTER;
        setp.gt.u32 %p3, %r1, %r10;
        @%p3 bra AFTER;
        add.u32 %r2, %r0, %r1;
        rem.u32 %r2, %r2, 3;
        setp.eq.u32 %p4, %r2, %r11;
        @%p4 bra NEXT;
        mad.lo.u32 %r3, %r0, %r1, 1;
        add.u32 %o0, %o0, %r3;
    NEXT:
        add.u32 %r1, %r1, 1;
        bra INNER;
    AFTER:
        setp.gt.u32 %p5, %o0, %r12;
        @%p5 bra DONE;
        add.u32 %r0, %r0, 1;
        bra OUTER;
    DONE:''', rows)


def tables(cases):
    rows = [((i % 4, i), ([i + 100, i * 2, i ^ 0xff, 7][i % 4],)) for i in range(32)]
    body = '''
    TARGETS: .branchtargets L0, L1, L2, L3;
        brx.idx %i0, TARGETS;
    L0:
        add.u32 %o0, %i1, 100;
        bra DONE;
    L1:
        shl.b32 %o0, %i1, 1;
        bra DONE;
    L2:
        xor.b32 %o0, %i1, 255;
        bra DONE;
    L3:
        mov.u32 %o0, 7;
    DONE:'''
    cases.case('brx.idx', 'u32 u32', 'u32', body, rows)
    cases.case('brx.idx.uniform', 'u32 u32', 'u32', body, [((2, i), (i ^ 0xff,)) for i in range(32)])


def exits(cases):
    rows = [((i,), (i + 1 if i % 3 else 'unwritten',)) for i in range(32)]
    cases.case('exit.guarded', 'u32', 'u32', '''
        rem.u32 %r0, %i0, 3;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 exit;
        add.u32 %o0, %i0, 1;''', rows)
    rows = [((i,), ('unwritten' if i >= 20 else i * 2,)) for i in range(32)]
    cases.case('ret.early', 'u32', 'u32', '''
        setp.lt.u32 %p1, %i0, 20;
        @%p1 bra GO;
        ret;
    GO:
        shl.b32 %o0, %i0, 1;''', rows)
    rows = [((i,), (sum(range(i + 1)) if i < 10 else 'unwritten',)) for i in range(32)]
    cases.case('exit.in.loop', 'u32', 'u32', '''
        mov.u32 %o0, 0;
        mov.u32 %r0, 0;
    LOOP:
        add.u32 %o0, %o0, %r0;
        setp.ge.u32 %p1, %r0, 10;
        @%p1 exit;
        setp.eq.u32 %p2, %r0, %i0;
        add.u32 %r0, %r0, 1;
        @!%p2 bra LOOP;''', rows)


CALL_MODULE = '''
.func (.param .b32 result) square(.param .b32 x)
{
    .reg .b32 %a;
    ld.param.b32 %a, [x];
    mul.lo.u32 %a, %a, %a;
    st.param.b32 [result], %a;
    ret;
}
.func (.param .b32 result) twice(.param .b32 x)
{
    .reg .b32 %a;
    ld.param.b32 %a, [x];
    add.u32 %a, %a, %a;
    st.param.b32 [result], %a;
    ret;
}'''


def call(target, argument, result, prototype=''):
    arrow = f', {prototype}' if prototype else ''
    return f'''{{
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], {argument};
        call (returned), {target}, (argument){arrow};
        ld.param.b32 {result}, [returned];
        }}'''


def calls():
    cases = CaseFile('Calls')
    rows = [((a,), (a * a, 2 * a)) for a in range(32)]
    cases.case('call.direct', 'u32', 'u32 u32',
               call('square', '%i0', '%o0') + '\n' + call('twice', '%i0', '%o1'), rows, module=CALL_MODULE)
    rows = [((a,), (a * a if a & 1 else a,)) for a in range(32)]
    cases.case('call.divergent', 'u32', 'u32', '''
        and.b32 %r0, %i0, 1;
        setp.eq.u32 %p1, %r0, 0;
        mov.u32 %o0, %i0;
        @%p1 bra SKIP;
        ''' + call('square', '%i0', '%o0') + '\nSKIP:', rows, module=CALL_MODULE)
    rows = [((a,), ([a * a, 2 * a][a & 1],)) for a in range(32)]
    pick = '''
        and.b32 %r0, %i0, 1;
        setp.eq.u32 %p1, %r0, 0;
        mov.u64 %rd0, square;
        mov.u64 %rd1, twice;
        selp.b64 %rd2, %rd0, %rd1, %p1;
    PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
        '''
    cases.case('call.indirect', 'u32', 'u32', pick + call('%rd2', '%i0', '%o0', 'PROTO'),
               rows, module=CALL_MODULE)
    table = CALL_MODULE + '\n.global .align 8 .u64 methods[2] = {square, twice};'
    cases.case('call.table', 'u32', 'u32', '''
        and.b32 %r0, %i0, 1;
        mul.wide.u32 %rd0, %r0, 8;
        mov.u64 %rd1, methods;
        add.u64 %rd1, %rd1, %rd0;
        ld.global.u64 %rd2, [%rd1];
    PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
        ''' + call('%rd2', '%i0', '%o0', 'PROTO'), rows, module=table)
    recursion(cases)
    structs(cases)
    return cases


def recursion(cases):
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
    rows = [((i % 12,), (fibonacci(i % 12),)) for i in range(32)]
    cases.case('call.recursive', 'u32', 'u32', call('fibonacci', '%i0', '%o0'), rows, module='''
.func (.param .b32 result) fibonacci(.param .b32 x)
{
    .reg .b32 %n, %a, %b;
    .reg .pred %p;
    ld.param.b32 %n, [x];
    setp.lt.u32 %p, %n, 2;
    @%p bra SMALL;
    sub.u32 %a, %n, 1;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %a;
        call (returned), fibonacci, (argument);
        ld.param.b32 %b, [returned];
    }
    sub.u32 %a, %n, 2;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %a;
        call (returned), fibonacci, (argument);
        ld.param.b32 %a, [returned];
    }
    add.u32 %n, %a, %b;
SMALL:
    st.param.b32 [result], %n;
    ret;
}''')
    # Local variables of each call are its own: digits of the argument, backwards.
    rows = [((v,), (int(str(v)[::-1]),)) for v in [random.Random(61).randrange(1, 100000) for _ in range(1)] +
            [i * 137 + 1 for i in range(31)]]
    cases.case('call.local', 'u32', 'u32', call('backwards', '%i0', '%o0'), rows, module='''
.func (.param .b32 result) backwards(.param .b32 x)
{
    .local .align 4 .b8 depot[40];
    .reg .b32 %n, %d, %c, %t, %v;
    .reg .b64 %base, %at;
    .reg .pred %p;
    ld.param.b32 %n, [x];
    mov.u64 %base, depot;
    mov.u32 %c, 0;
SPLIT:
    rem.u32 %d, %n, 10;
    div.u32 %n, %n, 10;
    mul.wide.u32 %at, %c, 4;
    add.u64 %at, %base, %at;
    st.local.u32 [%at], %d;
    add.u32 %c, %c, 1;
    setp.ne.u32 %p, %n, 0;
    @%p bra SPLIT;
    mov.u32 %t, 0;
    mov.u32 %v, 0;
JOIN:
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %base, %at;
    ld.local.u32 %d, [%at];
    mad.lo.u32 %v, %v, 10, %d;
    add.u32 %t, %t, 1;
    setp.lt.u32 %p, %t, %c;
    @%p bra JOIN;
    st.param.b32 [result], %v;
    ret;
}''')


def structs(cases):
    rows = [((a, b), (b, a, a + b)) for a, b in pairs(64)]
    cases.case('call.struct', 'u64 u64', 'u64 u64 u64', '''
        {
        .param .align 8 .b8 argument[16];
        .param .align 8 .b8 returned[24];
        st.param.b64 [argument], %i0;
        st.param.b64 [argument+8], %i1;
        call (returned), swap, (argument);
        ld.param.b64 %o0, [returned];
        ld.param.b64 %o1, [returned+8];
        ld.param.b64 %o2, [returned+16];
        }''', rows, module='''
.func (.param .align 8 .b8 result[24]) swap(.param .align 8 .b8 both[16])
{
    .reg .b64 %a, %b, %c;
    ld.param.v2.b64 {%a, %b}, [both];
    add.u64 %c, %a, %b;
    st.param.b64 [result], %b;
    st.param.b64 [result+8], %a;
    st.param.b64 [result+16], %c;
    ret;
}''')
    rows = [((a, b), (a + b, a - b)) for a, b in pairs(32)]
    cases.case('call.registers', 'u32 u32', 'u32 u32', 'call (%o0, %o1), both, (%i0, %i1);', rows, module='''
.func (.reg .u32 %sum, .reg .u32 %difference) both(.reg .u32 %a, .reg .u32 %b)
{
    add.u32 %sum, %a, %b;
    sub.u32 %difference, %a, %b;
    ret;
}''')
    rows = [((i, a), (a + 1 if i % 2 else a + 3, i % 2)) for i, a in enumerate(interesting(32))]
    cases.case('call.ret.divergent', 'u32 u32', 'u32 u32', '''
        call (%o0, %o1), early, (%i0, %i1);''', rows, module='''
.func (.reg .u32 %r, .reg .u32 %odd) early(.reg .u32 %i, .reg .u32 %a)
{
    .reg .pred %p;
    and.b32 %odd, %i, 1;
    setp.eq.u32 %p, %odd, 0;
    add.u32 %r, %a, 1;
    @!%p ret;
    add.u32 %r, %r, 2;
    ret;
}''')


def barriers():
    cases = CaseFile('Barriers')
    source = random.Random(71)
    flags = [source.randrange(2) for _ in range(96)]
    rows = [((f,), (sum(flags), int(all(flags)), int(any(flags)), 96)) for f in flags]
    cases.case('bar.red', 'pred', 'u32 pred pred u32', '''
        bar.red.popc.u32 %o0, 0, %i0;
        bar.red.and.pred %o1, 1, %i0;
        bar.red.or.pred %o2, 2, %i0;
        setp.eq.u32 %p1, %thread, %thread;
        barrier.cta.red.popc.aligned.u32 %o3, 3, %p1;''', rows)
    rows = [((i,), ((i * 3 + 64) if i < 64 else i,)) for i in range(128)]
    cases.case('bar.named', 'u32', 'u32', '''
        mul.lo.u32 %r0, %i0, 4;
        mov.u32 %r1, table;
        add.u32 %r0, %r1, %r0;
        setp.ge.u32 %p1, %i0, 64;
        mov.u32 %o0, %i0;
        @%p1 bra REST;
        mul.lo.u32 %r2, %i0, 3;
        st.shared.u32 [%r0], %r2;
        bar.sync 1, 64;
        xor.b32 %r3, %i0, 63;
        mul.lo.u32 %r3, %r3, 4;
        add.u32 %r3, %r1, %r3;
        ld.shared.u32 %r4, [%r3];
        sub.u32 %r5, 63, %i0;
        mul.lo.u32 %r5, %r5, 3;
        sub.u32 %r4, %r4, %r5;
        mad.lo.u32 %o0, %i0, 3, 64;
        add.u32 %o0, %o0, %r4;
    REST:
        bar.sync 0;''', rows, module='.shared .align 4 .b8 table[256];')
    # Warps 0 and 1 produce, 2 and 3 consume; each side arrives for the other and only one waits.
    rows = [((i,), (i if i < 64 else (i - 64) * 5,)) for i in range(128)]
    cases.case('bar.arrive', 'u32', 'u32', '''
        setp.ge.u32 %p1, %i0, 64;
        mov.u32 %r1, table;
        and.b32 %r2, %i0, 63;
        shl.b32 %r3, %r2, 2;
        add.u32 %r3, %r1, %r3;
        @%p1 bra CONSUME;
        mul.lo.u32 %r4, %r2, 5;
        st.shared.u32 [%r3], %r4;
        membar.cta;
        bar.arrive 3, 128;
        mov.u32 %o0, %i0;
        bra DONE;
    CONSUME:
        bar.sync 3, 128;
        ld.shared.u32 %o0, [%r3];
    DONE:''', rows, module='.shared .align 4 .b8 table[256];')
    # Warp 1 leaves; the others meet without it. In warp 2 every other thread leaves.
    rows = []
    for i in range(96):
        gone = 32 <= i < 64 or (i >= 64 and i % 2 == 0)
        rows.append(((i,), ('unwritten' if gone else 48,)))
    cases.case('bar.exited', 'u32', 'u32', '''
        setp.ge.u32 %p1, %i0, 32;
        setp.lt.and.u32 %p2, %i0, 64, %p1;
        @%p2 exit;
        and.b32 %r0, %i0, 1;
        setp.eq.u32 %p3, %r0, 0;
        setp.ge.and.u32 %p3, %i0, 64, %p3;
        @%p3 exit;
        setp.eq.u32 %p4, %i0, %i0;
        barrier.sync 0;
        bar.red.popc.u32 %o0, 1, %p4;''', rows, about='threads that have exited are not waited for')
    rows = [((i,), (i ^ 1,)) for i in range(32)]
    cases.case('barrier.divergent', 'u32', 'u32', '''
        mov.u32 %r1, table;
        shl.b32 %r0, %i0, 2;
        add.u32 %r0, %r1, %r0;
        xor.b32 %r2, %i0, 1;
        shl.b32 %r2, %r2, 2;
        add.u32 %r2, %r1, %r2;
        and.b32 %r3, %i0, 1;
        setp.eq.u32 %p1, %r3, 0;
        @%p1 bra EVEN;
        st.shared.u32 [%r0], %i0;
        barrier.sync 0;
        bra JOIN;
    EVEN:
        st.shared.u32 [%r0], %i0;
        barrier.sync 0;
    JOIN:
        ld.shared.u32 %o0, [%r2];''', rows, module='.shared .align 4 .b8 table[128];',
               about='barrier without .aligned may be reached at two places')
    others(cases)
    return cases


def others(cases):
    rows = [((a,), (a, a + 1)) for a in interesting(32)]
    cases.case('cp.async', 'u32', 'u32 u32', '''
        mov.u64 %rd0, buffer;
        mul.wide.u32 %rd1, %thread, 16;
        add.u64 %rd1, %rd0, %rd1;
        add.u32 %r3, %i0, 1;
        st.global.u32 [%rd1], %i0;
        st.global.u32 [%rd1+4], %r3;
        st.global.u32 [%rd1+8], %r3;
        membar.gl;
        mov.u32 %r0, table;
        mul.lo.u32 %r1, %thread, 16;
        add.u32 %r1, %r0, %r1;
        cp.async.ca.shared.global [%r1], [%rd1], 16;
        cp.async.commit_group;
        cp.async.wait_group 0;
        ld.shared.u32 %o0, [%r1];
        ld.shared.u32 %o1, [%r1+4];''', rows,
               module='.global .align 16 .b8 buffer[1024];\n.shared .align 16 .b8 table[1024];')
    rows = [((a, i % 17), (a, a if i % 17 >= 8 else 0, a if i % 17 >= 16 else 0))
            for i, a in enumerate(interesting(32)) if i % 17 in (4, 8, 12, 16, 5) and i % 4 == 0
            or i % 17 in (4, 8, 16)]
    cases.case('cp.async.zeros', 'u32 u32', 'u32 u32 u32', '''
        mov.u64 %rd0, buffer;
        mul.wide.u32 %rd1, %thread, 16;
        add.u64 %rd1, %rd0, %rd1;
        st.global.v4.u32 [%rd1], {%i0, %i0, %i0, %i0};
        membar.gl;
        mov.u32 %r0, table;
        mul.lo.u32 %r1, %thread, 16;
        add.u32 %r1, %r0, %r1;
        cp.async.cg.shared.global [%r1], [%rd1], 16, %i1;
        cp.async.wait_all;
        ld.shared.u32 %o0, [%r1];
        ld.shared.u32 %o1, [%r1+4];
        ld.shared.u32 %o2, [%r1+12];''', [(g, o) for g, o in rows if g[1] in (4, 8, 16)],
               module='.global .align 16 .b8 buffer[1024];\n.shared .align 16 .b8 table[1024];')
    rows = [((i,), (64 - 1 - i,)) for i in range(64)]
    cases.case('mbarrier', 'u32', 'u32', '''
        setp.eq.u32 %p1, %thread, 0;
        mov.u32 %r0, table;
        mov.u32 %r9, 64;
        @%p1 mbarrier.init.shared.b64 [gate], %r9;
        bar.sync 0;
        shl.b32 %r1, %thread, 2;
        add.u32 %r1, %r0, %r1;
        st.shared.u32 [%r1], %i0;
        mbarrier.arrive.shared.b64 %rd0, [gate];
    WAIT:
        mbarrier.test_wait.shared.b64 %p2, [gate], %rd0;
        @!%p2 bra WAIT;
        sub.u32 %r2, 63, %thread;
        shl.b32 %r2, %r2, 2;
        add.u32 %r2, %r0, %r2;
        ld.shared.u32 %o0, [%r2];''', rows,
               module='.shared .align 8 .b64 gate;\n.shared .align 4 .b8 table[256];')
    rows = [((i,), (i, 1, 0)) for i in range(64)]
    cases.case('mbarrier.parity', 'u32', 'u32 pred pred', '''
        setp.eq.u32 %p1, %thread, 0;
        mov.u32 %r9, 64;
        @%p1 mbarrier.init.shared::cta.b64 [gate], %r9;
        bar.sync 0;
        mbarrier.arrive.release.cta.shared::cta.b64 _, [gate];
    WAIT:
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [gate], 0;
        @!%p2 bra WAIT;
        mov.u32 %o0, %i0;
        mbarrier.test_wait.parity.shared::cta.b64 %o1, [gate], 0;
        mbarrier.test_wait.parity.shared::cta.b64 %o2, [gate], 1;''', rows,
               module='.shared .align 8 .b64 gate;')


def spin():
    """A lock that threads of one warp take in turn."""
    cases = CaseFile('Threads of a warp that wait for each other')
    rows = [((i,), (32,)) for i in range(32)]
    cases.case('spin.lock', 'u32', 'u32', '''
    AGAIN:
        atom.global.cas.b32 %r0, [lock], 0, 1;
        setp.ne.u32 %p1, %r0, 0;
        @%p1 bra AGAIN;
        ld.volatile.global.u32 %r1, [count];
        add.u32 %r1, %r1, 1;
        st.volatile.global.u32 [count], %r1;
        membar.gl;
        atom.global.exch.b32 %r2, [lock], 0;
        bar.warp.sync 0xffffffff;
        membar.gl;
        ld.volatile.global.u32 %o0, [count];''', rows, module='.global .u32 lock;\n.global .u32 count;',
               about='independent thread scheduling: the thread that holds the lock runs on')
    rows = [((i,), (100 + i // 16,)) for i in range(32)]
    cases.case('shfl.two.places', 'u32', 'u32', '''
        setp.lt.u32 %p1, %i0, 16;
        mov.u32 %r0, 101;
        @%p1 bra LOW;
        shfl.sync.idx.b32 %o0, %r0, 16, 31, 0xffffffff;
        bra JOIN;
    LOW:
        mov.u32 %r0, 100;
        shfl.sync.idx.b32 %o0, %r0, 0, 31, 0xffffffff;
    JOIN:''', rows, about='all of the mask arrive, some here and some there')
    return cases


def whole_warp():
    cases = CaseFile('Instructions of a whole warp')
    source = random.Random(81)
    values = [source.getrandbits(32) for _ in range(32)]
    for mode in ('up', 'down', 'bfly', 'idx'):
        for clamp, segment in ((31, 0), (0, 0), (31, 24), (7, 24), (31, 16)):
            if mode == 'up' and clamp != 0:
                clamp = 0
            rows = []
            offsets = ([source.randrange(32) for _ in range(32)] if mode in ('idx', 'bfly')
                       else [source.randrange(9) for _ in range(32)])
            for lane in range(32):
                by = offsets[lane]
                least = lane & segment
                bound = least | (clamp & ~segment & 31)
                at = {'up': lane - by, 'down': lane + by, 'bfly': lane ^ by,
                      'idx': least | (by & ~segment & 31)}[mode]
                ok = at >= bound if mode == 'up' else at <= bound
                rows.append(((values[lane], by), (values[at if ok else lane], int(ok))))
            name = f'shfl.{mode}.{clamp}.{segment}'
            if any(line == f'case {name}' for line in cases.lines):
                continue
            cases.case(name, 'b32 u32', 'b32 pred', f'shfl.sync.{mode}.b32 %o0|%o1, %i0, %i1, '
                       f'{segment << 8 | clamp:#x}, 0xffffffff;', rows)
    votes(cases)
    matches(cases)
    reductions(cases)
    return cases


def votes(cases):
    patterns = {'mixed': 0x0f0f1234, 'none': 0, 'all': 0xffffffff}
    for name, pattern in patterns.items():
        rows = [((pattern >> i & 1,), (int(pattern == 0xffffffff), int(pattern != 0),
                                       int(pattern in (0, 0xffffffff)), pattern)) for i in range(32)]
        cases.case(f'vote.{name}', 'pred', 'pred pred pred b32', '''
            vote.sync.all.pred %o0, %i0, 0xffffffff;
            vote.sync.any.pred %o1, %i0, 0xffffffff;
            vote.sync.uni.pred %o2, %i0, 0xffffffff;
            vote.sync.ballot.b32 %o3, %i0, 0xffffffff;''', rows)
    rows = []
    for i in range(32):
        members = 0x55555555 if i % 2 == 0 else 0xaaaaaaaa
        rows.append(((i, int(i % 3 == 0)),
                     (sum(1 << k for k in range(32) if members >> k & 1 and k % 3 == 0),)))
    cases.case('vote.halves', 'u32 pred', 'b32', '''
        and.b32 %r0, %i0, 1;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 bra EVEN;
        vote.sync.ballot.b32 %o0, %i1, 0xaaaaaaaa;
        bra JOIN;
    EVEN:
        vote.sync.ballot.b32 %o0, %i1, 0x55555555;
    JOIN:''', rows)
    # What is active after a branch is the machine's business; before any, all are.
    cases.case('activemask', '', 'b32', 'activemask.b32 %o0;', [((), (0xffffffff,))] * 32)
    cases.case('activemask.ragged', '', 'b32', 'activemask.b32 %o0;',
               [((), (0xffffffff if i < 32 else 0xff,)) for i in range(40)])


def matches(cases):
    for kind, scale in (('b32', 1), ('b64', 1 << 40)):
        values = [(i * i % 5) * scale for i in range(32)]
        rows = [((v,), (sum(1 << k for k in range(32) if values[k] == v), 0, 0)) for v in values]
        body = f'match.any.sync.{kind} %o0, %i0, 0xffffffff;\nmatch.all.sync.{kind} %o1|%o2, %i0, 0xffffffff;'
        cases.case(f'match.{kind}', kind, 'b32 b32 pred', body, rows)
        rows = [((7 * scale,), (0xffffffff, 0xffffffff, 1))] * 32
        cases.case(f'match.same.{kind}', kind, 'b32 b32 pred', body, rows)


def reductions(cases):
    values = [a for a, _ in pairs(32, 32, seed=91)]

    def fold(compute, numbers):
        result = numbers[0]
        for n in numbers[1:]:
            result = compute(result, n)
        return result
    unsigned = [fold(lambda a, b: a + b, values), min(values), max(values)]
    rows = [((v,), tuple(unsigned)) for v in values]
    cases.case('redux.u32', 'u32', 'u32 u32 u32', '\n'.join(f'redux.sync.{op}.u32 %o{i}, %i0, 0xffffffff;'
                                                            for i, op in enumerate(('add', 'min', 'max'))),
               rows)
    numbers = [signed(v, 32) for v in values]
    rows = [((v,), (min(numbers), max(numbers))) for v in values]
    cases.case('redux.s32', 's32', 's32 s32',
               'redux.sync.min.s32 %o0, %i0, 0xffffffff;\nredux.sync.max.s32 %o1, %i0, 0xffffffff;', rows)
    bits = [fold(lambda a, b: a & b, values), fold(lambda a, b: a | b, values),
            fold(lambda a, b: a ^ b, values)]
    rows = [((v,), tuple(bits)) for v in values]
    cases.case('redux.b32', 'b32', 'b32 b32 b32', '\n'.join(f'redux.sync.{op}.b32 %o{i}, %i0, 0xffffffff;'
                                                            for i, op in enumerate(('and', 'or', 'xor'))),
               rows)
    rows = [((), (int(i == 0), 1)) for i in range(32)]
    cases.case('elect', '', 'pred u32', '''
        elect.sync %r0|%o0, 0xffffffff;
        vote.sync.ballot.b32 %r1, %o0, 0xffffffff;
        popc.b32 %o1, %r1;''', rows)


def video():
    cases = CaseFile('SIMD video instructions')

    def elements(value, bits, is_signed):
        parts = [value >> s & ((1 << bits) - 1) for s in range(0, 32, bits)]
        return [signed(p, bits) for p in parts] if is_signed else parts
    operations = {'vadd': lambda a, b: a + b, 'vsub': lambda a, b: a -
                  b, 'vabsdiff': lambda a, b: abs(a - b), 'vmin': min, 'vmax': max}
    for name, compute in operations.items():
        for count, bits in ((4, 8), (2, 16)):
            for kind in ('u32', 's32'):
                is_signed = kind == 's32'
                least, most = (-(1 << (bits - 1)),
                               (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
                plain, total = [], []
                for a, b in pairs(32):
                    results = [compute(x, y)
                               for x, y in zip(elements(a, bits, is_signed), elements(b, bits, is_signed))]
                    # noqa: E731
                    join = lambda parts: sum((p & ((1 << bits) - 1)) << (bits * i)
                                             for i, p in enumerate(parts))
                    plain.append(((a, b), (join(results), join([max(least, min(most, r)) for r in results]))))
                    total.append(((a, b, 5), (5 + sum(results),)))
                form = f'{name}{count}.{kind}.{kind}.{kind}'
                cases.case(form, 'b32 b32', 'b32 b32', f'mov.b32 %r0, 0;\n{form} %o0, %i0, %i1, %r0;\n'
                           f'{form}.sat %o1, %i0, %i1, %r0;', plain)
                cases.case(f'{form}.add', 'b32 b32 b32', 'b32', f'{form}.add %o0, %i0, %i1, %i2;', total)
    return cases
