#!/usr/bin/env bash
# Everything that needs a GPU, in one command: run_all.sh OUT COMMIT [PART ...]
#   parts: check python faults bench (default: these, in this order), examples, unmanaged, graphs, door,
#   frameworks;
#   SECONDS_IN_ALL (default 560) is shared out among them. Writes at most eight plain files into OUT, and goes
#   on after failures. Exit code 1 when a part failed, had no time left or does not exist; the last line names
#   those parts.
set -u
out=${1:?usage: run_all.sh OUT COMMIT [PART ...]}
commit=${2:-unknown}
shift; shift || true
parts=${*:-check python faults bench}
here=$(cd "$(dirname "$0")" && pwd)
build=${SMT_TEST_BUILD:-$here/../../build}
begin=$SECONDS
total=${SECONDS_IN_ALL:-560}
jobs=${JOBS:-$(( $(nproc) > 12 ? 6 : ($(nproc) + 1) / 2 ))}
unset SMT_RUNTIME_DIR SMT_SERVER SMT_DRIVER SMT_REAL_DRIVER SMT_FALLBACK SMT_TENANT SMT_MEMORY_LIMIT
unset SMT_IDLE_SECONDS LD_PRELOAD
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
mkdir -p "$out"

{
    echo "commit $commit"
    date -u
    uname -a
    nproc
    ldd --version 2>&1 | head -n 1
    timeout -k 2 20 nvidia-smi
    timeout -k 2 20 nvidia-smi --format=csv \
        --query-gpu=name,driver_version,memory.total,memory.used,clocks.sm,compute_mode
    timeout -k 2 20 python3 -c 'import sys; print(sys.version)'
    timeout -k 2 20 python3 -m pip list 2>/dev/null |
        grep -iE '^(torch|triton|jax|jaxlib|cupy|numpy|nvidia-)'
    ls -l "$build/lib/libsmt.so" "$build/bin/smtd" "$build/bin/smt" "$build/bin/bench_remoting"
    ldd "$build/bin/smtd" "$build/bin/smt" "$build/lib/libsmt.so" 2>&1 | grep -E ':$|not found'
    timeout -k 2 20 "$build/bin/smt" doctor
} >"$out/environment.txt" 2>&1
cat "$out/environment.txt"

# What is left of the whole time, but never more than the second argument.
left() { local rest=$((total - (SECONDS - begin) - 5)); echo $((rest < $1 ? rest : $1)); }

failed=()
one() {   # NAME SECONDS COMMAND...: runs it within its time, keeps what it says
    local name=$1 seconds status
    seconds=$(left "$2")
    shift 2
    if ((seconds < 15)); then echo "== $name: no time left"; failed+=("$name (no time left)"); return; fi
    echo "== $name, at most $seconds s"
    local start=$SECONDS
    timeout -k 5 "$seconds" "${@//@BUDGET@/$((seconds * 85 / 100 - 8))}" >"$out/$name.txt" 2>&1
    status=$?
    ((status == 0)) || failed+=("$name (exit code $status)")
    echo "== $name: exit code $status after $((SECONDS - start)) s"
    tail -n "${TAIL:-70}" "$out/$name.txt"
}

script() {   # NAME SECONDS SCRIPT OPTION...: one of this folder's
    local name=$1 seconds=$2 script=$3
    shift 3
    one "$name" "$seconds" python3 "$here/$script" --build "$build" "$@"
}
lines_of() {   # PART: its lines, from a folder of its own
    mv -f "$out/$1.d/check.jsonl" "$out/$1.jsonl" 2>/dev/null
    rmdir "$out/$1.d" 2>/dev/null
}

timed=(--jobs "$jobs" --budget @BUDGET@)
for part in $parts; do
    case $part in
    check)  script check 240 check.py --programs --out "$out" "${timed[@]}" ;;
    python) script python 260 check.py --python --out "$out/python.d" "${timed[@]}"
            lines_of python ;;
    frameworks) script frameworks 560 frameworks.py --out "$out/frameworks.d" "${timed[@]}"
            lines_of frameworks ;;
    faults) script faults 420 faults.py --out "$out" --starts-budget "${STARTS_BUDGET:-200}" ;;
    bench)  one bench 300 "$build/bin/bench_remoting" --preload "$build/lib/libsmt.so" \
                --json "$out/bench.jsonl" --budget @BUDGET@ ;;
    examples) script examples 200 examples.py --out "$out" "${timed[@]}" ;;
    unmanaged) script unmanaged 110 unmanaged.py --out "$out" ;;
    graphs) script graphs 200 graphs.py --out "$out" ;;
    door)   code=$build/bin/gpu/machine_code
            one door 500 "$code/door_check" "$out/door.jsonl" "$code/plain.cubin" "$code/debug.cubin" \
                "$code/lineinfo.cubin" "$code/few.cubin" ;;
    *)      echo "no part $part"; failed+=("$part (no such part)") ;;
    esac
done
# The eight files: environment, check, python, faults and bench as text would be nine with the lines.
[ -f "$out/python.txt" ] && { echo; echo "==== python"; cat "$out/python.txt"; } >>"$out/check.txt" &&
    rm -f "$out/python.txt"
ls -l "$out"
echo "run_all: $((SECONDS - begin)) s"
((${#failed[@]} == 0)) && exit 0
printf 'run_all: failed:'; printf ' %s' "${failed[@]}"; echo
exit 1
