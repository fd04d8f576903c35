#!/usr/bin/env python3
"""smt replay on a recording of a more and a less urgent tenant on the simulated device: replay_test.py SMT"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "recordings"
RECORDING, GOLDEN = HERE / "two_tenants.jsonl", HERE / "two_tenants.fifo.golden"


def replay(smt, *arguments, code=0):
    done = subprocess.run([smt, "replay", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def replay_on_gpus(smt):
    arguments = (RECORDING, "--gpus", 6, "--tenants", 60, "--load", "1.5")
    table = replay(smt, *arguments)
    assert "60 tenants of 2 kinds on 6 GPUs of 8 multiprocessors, policy priority" in table, table
    rows = {row.split()[0]: row.split()[1:] for row in table.splitlines()[3:]}
    assert list(rows) == ["first-fit", "memory", "any", "profile"], table
    assert all(len(row) == 11 and float(row[0]) >= 1 and float(row[6]) <= 6 for row in rows.values()), table
    assert replay(smt, *arguments) == table
    assert replay(smt, *arguments, "--seed=2") != table
    alone = replay(smt, *arguments, "--place", "any", "--policy", "fair")
    assert "policy fair" in alone and [row.split()[0] for row in alone.splitlines()[3:]] == ["any"], alone
    for wrong, told in ((("--gpus", "0"), "--gpus wants a whole number from 1 to 10000, not '0'"),
                        (("--gpus=2", "--tenants", "x"), "--tenants wants a whole number"),
                        (("--gpus=2", "--load", "none"), "--load wants a number from 0.01 to 10"),
                        (("--gpus=2", "--place", "best"), "there are first-fit, memory, any, profile"),
                        (("--gpus=2", "--policy", "best"), "no policy 'best'"),
                        (("--gpus=2", "--summary"), "--summary goes without --gpus"),
                        (("--seed=2",), "--seed goes with --gpus")):
        assert told in replay(smt, RECORDING, *wrong, code=2), (wrong, told)
    assert "which recordings" in replay(smt, "--gpus", 2, code=2)
    with tempfile.TemporaryDirectory() as folder:
        empty = pathlib.Path(folder) / "nothing"
        empty.write_text('{"recording":2,"policy":"fifo"}\n')
        assert f"{empty}: no tenant has a launch in it" in replay(smt, empty, "--gpus", 2, code=1)


def main():
    smt = sys.argv[1]
    replay_on_gpus(smt)
    fifo = replay(smt, RECORDING, "--policy", "fifo")
    if "SMT_TEST_WRITE_GOLDEN" in os.environ:
        GOLDEN.write_text(fifo)
    assert fifo == GOLDEN.read_text(), fifo

    # The policy that decided decides the same again.
    same = replay(smt, "--policy=priority", "--differences", RECORDING)
    assert re.fullmatch(r"9 decisions in [\d.]+ ms\n  priority +0 would have been different\n", same), same
    differences = replay(smt, "--policy=fifo", "--differences", RECORDING)
    assert 0 < differences.count("decided ") < 9 and differences.count("decided ") == int(
        re.search(r"fifo +(\d+) would", differences)[1])
    summary = replay(smt, RECORDING, "--summary")
    listed = re.findall(r"^  ([\w-]+) +\d+ would", summary, re.MULTILINE)
    assert {"fifo", "priority", "greedy", "hpf", "fair", "share", "slice",
            "compact"} <= set(listed) and "decided " not in summary, summary
    assert all(f"\n  {name} " in replay(smt, RECORDING) for name in listed)

    with tempfile.TemporaryDirectory() as folder:
        damaged = pathlib.Path(folder) / "damaged"
        lines = RECORDING.read_text().splitlines(keepends=True)
        damaged.write_text("".join(lines[:4]) + lines[4].replace('"kernels"', '"kernals"') +
                           "".join(lines[5:]))
        told = replay(smt, damaged, "--summary", code=1)
        assert f"{damaged}:5: snapshot: there is an unknown field in it" in told, told
        before = pathlib.Path(folder) / "before"
        service = '"snapshot":{"services":[{"session":9,"tenant":"s","target":{"p99":1000000}}],'
        with_service = RECORDING.read_text().replace('"snapshot":{', service, 1)
        assert '"recording":1' in with_service and service in with_service
        before.write_text(with_service)
        for policy in ([], ["--policy", "slo"]):
            told = replay(smt, before, *policy, code=1)
            assert f"{before}: an earlier smt recorded it, without the requests" in told, told
        replay(smt, before, "--policy", "priority")
        before.write_text(with_service.replace('"recording":1', '"recording":2'))
        replay(smt, before)
        assert "No such file" in replay(smt, pathlib.Path(folder) / "missing", code=1)
    told = replay(smt, RECORDING, "--policy", "best", code=2)
    assert "no policy 'best'; there are fifo, priority" in told, told
    assert "which recording" in replay(smt, code=2) and "unknown option" in replay(smt, RECORDING,
                                                                                   "--fast", code=2)


if __name__ == "__main__":
    main()
