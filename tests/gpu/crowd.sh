#!/usr/bin/env bash
# One program, COPIES at once under one server, ROUNDS times: crowd.sh BUILD PROGRAM [COPIES [ROUNDS]]. Prints
# how many ended well; one that hangs is ended after 25 s and counts as wrong.
set -u
build=$1 program=$2 copies=${3:-8} rounds=${4:-6}
directory=$(mktemp -d /tmp/smt-crowd-XXXX)
export SMT_RUNTIME_DIR=$directory
good=0
for ((round = 0; round < rounds; ++round)); do
    pids=()
    for ((copy = 0; copy < copies; ++copy)); do
        timeout -k 2 25 env LD_PRELOAD="$build/lib/libsmt.so" "$program" >"$directory/out-$copy" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" && good=$((good + 1)); done
done
"$build/bin/smt" server stop >/dev/null 2>&1
echo "$(basename "$program"): $good of $((copies * rounds)) right"
rm -rf "$directory"
[[ $good == $((copies * rounds)) ]]
