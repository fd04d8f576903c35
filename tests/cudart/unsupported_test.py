#!/usr/bin/env python3
"""What the runtime does not do is named once on stderr if asked for, and its calls are counted in the
server's journal.

    unsupported_test.py SMT FAKE_DRIVER PROGRAM
"""

import json
import os
import subprocess
import sys
import tempfile

PATIENCE = 60
LINE = "smt: cudaDeviceDisablePeerAccess is not supported"


def main():
    smt, driver, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SMT_RUNTIME_DIR=folder, SMT_DRIVER=driver, SMT_REAL_DRIVER="none")
        try:
            for wanted, lines in (("0", 0), ("1", 1)):
                os.environ["SMT_REPORT_UNSUPPORTED"] = wanted
                ran = subprocess.run([smt, "run", "--tenant", f"wanted{wanted}", "--", program],
                                     capture_output=True,
                                     text=True, timeout=PATIENCE)
                assert ran.returncode == 0, ran.stderr
                assert ran.stderr.count(LINE) == lines, ran.stderr
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE)   # the sessions have ended then
            log = subprocess.run([smt, "log", "--json"], check=True, capture_output=True,
                                 text=True, timeout=PATIENCE)
            entries = [json.loads(line) for line in log.stdout.splitlines()]
            counts = [(entry["tenant"], entry["name"], entry["value"]) for entry in entries
                      if entry["kind"] == "unsupported"]
            # it calls it three times
            wanted = [(f"wanted{i}", "cudaDeviceDisablePeerAccess", count)
                      for i in "01" for count in (1, 2, 3)]
            assert counts == wanted, counts
            text = subprocess.run([smt, "log"], check=True, capture_output=True, text=True,
                                  timeout=PATIENCE).stdout
            assert "3 times by wanted0" in text, text
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE)


if __name__ == "__main__":
    main()
