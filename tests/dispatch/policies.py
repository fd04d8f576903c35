#!/usr/bin/env python3
"""Two programs side by side under a policy, on the simulated device: policies.py SMT CHECKSUMS FOLDER POLICY

Results must be those that the programs have alone, and the journal must show that the policy was carried out:
its decisions, and, where it gives quotas, that workers kept to them.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE = 240
PROGRAMS = {"one": "pathfinder", "two": "matrix_multiply"}
ITERATIONS = 30
# What each says of both tenants sooner or later; share of the one that it holds back.
SAYS = {"greedy": r"\d+ CTAs an SM, beside 1 others", "hpf": r"has SMs \d+ to \d+|has the GPU",
        "fair": r"the turn of (one|two)", "share": r"ahead of (one|two)",
        "compact": r"CTAs"}


def main():
    smt, checksums, folder, policy = sys.argv[1:]
    lines = [line.split() for line in pathlib.Path(checksums).read_text().splitlines()
             if line and not line.startswith("#")]
    expected = {row[0]: row[2] for row in lines if row[1] == "trivial"}
    with tempfile.TemporaryDirectory() as runtime:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        environment.update(SMT_RUNTIME_DIR=runtime, SMT_POLICY=policy, SMT_COMPILE="wait=10",
                           SMT_SIM="tenants=2,grace=1000",
                           SMT_PROFILES="none")   # what earlier runs took decides how long turns are
        try:
            started = {tenant: subprocess.Popen([smt, "run", "--device", "sim", "--tenant", tenant,
                                                 "--weight", "2" if tenant == "one" else "1",
                                                 "--", f"{folder}/{name}", "--size", "trivial",
                                                 "--iterations", str(ITERATIONS)],
                                                env=environment, stdout=subprocess.PIPE,
                                                stderr=subprocess.STDOUT, text=True)
                       for tenant, name in PROGRAMS.items()}
            for tenant, process in started.items():
                output = process.communicate(timeout=PATIENCE)[0]
                found = re.search(r"^checksum (\w+)$", output, re.MULTILINE)
                assert process.returncode == 0 and found and found[1] == expected[PROGRAMS[tenant]], \
                    f"{tenant}: {output}"
            log = subprocess.run([smt, "log", "--json"], env=environment, capture_output=True, text=True,
                                 timeout=PATIENCE, check=True).stdout
            decisions = [entry for entry in map(json.loads, log.splitlines()) if entry["kind"] == "decision"]
            spoken_of = set()
            for tenant in PROGRAMS:
                said = [entry["text"] for entry in decisions if entry["tenant"] == tenant]
                print(f"{tenant}: {len(said)} decisions, the first {said[:3]}")
                if any(re.search(SAYS[policy], text) for text in said):
                    spoken_of.add(tenant)
            assert len(spoken_of) >= (1 if policy == "share" else 2), f"{policy} is said of {spoken_of} alone"
        except BaseException:
            for path in pathlib.Path(runtime).glob("*.log"):
                print(f"-- {path.name}\n{path.read_text()}")
            raise
        finally:
            for process in started.values():
                process.kill()
            subprocess.run([smt, "server", "stop"], env=environment, timeout=PATIENCE,
                           stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
