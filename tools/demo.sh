#!/usr/bin/env bash
# Two programs side by side through smt, and what the server saw of them. Run by ./bootstrap.sh demo,
# after the build: tools/demo.sh BUILD_FOLDER. `smt demo` is PREFIX/libexec/smt/demo.sh [PREFIX]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=${1:-$(cd .. && pwd)}
readonly smt=$root/bin/smt
readonly shown_lines=40
programs=()
device=

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'demo.sh: %s\n' "$*" >&2; exit 1; }

# A folder and so a server of the demo's own: a server that is in use stays untouched, and nothing is left.
SMT_RUNTIME_DIR=$(mktemp -d)
export SMT_RUNTIME_DIR SMT_CACHE_DIR=$SMT_RUNTIME_DIR/cache SMT_PROFILES=none
export SMT_COMPILE=wait=10   # both are managed from the first launch on, so that the log shows it
trap '"$smt" server stop >/dev/null || true; rm -rf "$SMT_RUNTIME_DIR"' EXIT

has_gpu() { "$smt" doctor 2>/dev/null | grep -Eq '^ok +GPU'; }

# In the build, or in lib/smt below the prefix, whatever its lib is called.
find_example() {
    local file
    for file in "$root/examples/$1" "$root"/lib*/smt/examples/"$1" "$root"/lib/*/smt/examples/"$1"; do
        [[ ! -x $file ]] || { printf '%s\n' "$file"; return; }
    done
    fail "smt was installed without its demo's programs (cmake --build BUILD --target demo_programs; by nvcc)"
}

choose_programs() {
    local kind size
    if has_gpu; then
        say "on the GPU of this machine, with NVIDIA's own CUDA runtime in each program"
        kind=static size=small device=gpu
        export SMT_JOURNAL=times
    else
        say "there is no GPU in this machine: on the simulated device, which executes the programs' PTX"
        say "on SMs of its own; times are those of its clock, not of this machine's"
        kind=shared size=trivial device=sim
        export SMT_SIM=tenants=2   # its clock starts when both programs are there
    fi
    local names=(nbody matrix_multiply) name file
    for name in "${names[@]}"; do
        [[ ! -f $root/CMakeCache.txt ]] || cmake --build "$root" --target "examples/$kind/$name" ||
            fail "the demo's programs could not be built; is there an nvcc?"
        file=$(find_example "$kind/$name")
        programs+=("$file --size $size --iterations 3")
    done
}

run_side_by_side() {
    local names=(alice bob) pids=() i failed=0
    for i in 0 1; do
        say "smt run --device $device --tenant ${names[i]} -- ${programs[i]}"
        # shellcheck disable=SC2086  # the program and its options
        "$smt" run --device "$device" --tenant "${names[i]}" -- ${programs[i]} 2>&1 |
            sed "s/^/${names[i]}: /" &
        pids+=($!)
    done
    for i in 0 1; do wait "${pids[i]}" || failed=1; done
    (( failed == 0 )) ||
        fail "a program failed; the server's log: $(cat "$SMT_RUNTIME_DIR"/*.log 2>/dev/null)"
}

show_log() {
    local text
    text=$("$smt" log)
    awk -v most="$shown_lines" '{ line[NR] = $0 } /^$/ && !summary { summary = NR }
        END {
            for (i = 1; i <= NR; ++i) {
                if (i == most && summary > most) printf "... %d lines more ...\n", summary - most
                if (i < most || i >= summary) print line[i]
            }
        }' <<<"$text"
}

# A server learns of a program's end by its socket; give it the moment it takes to clear up.
wait_until_cleared() {
    local _
    for _ in {1..50}; do
        "$smt" server status | grep -Eq 'sessions +0 open' && return
        sleep 0.1
    done
}

choose_programs
run_side_by_side
wait_until_cleared
say "smt server status"
"$smt" server status
say "smt log"
show_log
