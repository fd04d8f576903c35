#!/usr/bin/env python3
"""smt-metrics as a process, beside programs on the simulated device: endpoint.py SMT SCENARIO"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from asking import PATIENCE, ask

SKIPPED = 77
SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent
DASHBOARD, USAGE = SOURCES / "tools/metrics/grafana.json", SOURCES / "docs/usage.md"
SAMPLE = re.compile(r'^(\w+)\{(.*)\} (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Place:
    def __init__(self, smt, folder):
        self.smt, self.folder, self.started = smt, pathlib.Path(folder), []
        os.environ.update(SMT_RUNTIME_DIR=str(self.folder / "run"), SMT_PROFILES="none")
        (self.folder / "run").mkdir(mode=0o700)

    def command(self, *words, code=0):
        done = subprocess.run([self.smt, *words], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr

    def run(self, tenant, *arguments):
        program = str(pathlib.Path(self.smt).parent / "sim_work")
        return self.command("run", "--device", "sim", "--tenant", tenant, "--", program, *map(str, arguments))

    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def listen(self, where):
        process = self.start(self.smt, "metrics", "--listen", where)
        address = process.stdout.readline().strip()
        assert address, process.stderr.read()
        return process, address

    def clean_up(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        subprocess.run([self.smt, "server", "stop"], timeout=PATIENCE, capture_output=True)


def samples(text):
    """(name, labels) -> value. Each line is one, or a comment; the last says that it is the end."""
    lines = text.splitlines()
    assert text.endswith("\n") and lines[-1] == "# EOF", lines[-1:]
    found = {}
    for line in lines[:-1]:
        if line.startswith(("# TYPE ", "# HELP ")):
            continue
        match = SAMPLE.match(line)
        assert match, line
        key = match[1], tuple(LABEL.findall(match[2]))
        assert key not in found, f"twice: {line}"
        found[key] = float(match[3])
    return found


def value(found, name, **labels):
    matching = [number for (each, have), number in found.items()
                if each == name and labels.items() <= dict(have).items()]
    return sum(matching)


def scrape(address, method="GET", path="/metrics", body=None):
    status, headers, text = ask(address, method, path, body)
    return status, headers["Content-Type"], text


def entries(place, tenant, kind):
    lines = place.command("log", "--json", "--tenant", tenant).splitlines()
    return [each for each in map(json.loads, lines) if each["kind"] == kind]


def figures(place):
    """As many launches and sessions as the journal has, also of programs that are gone."""
    assert samples(place.command("metrics")) == {}
    process, address = place.listen("0")
    for tenant, launches in ("alice", 5), ("bob", 7), ("alice", 3):
        place.run(tenant, launches, 60)
    status, kind, text = scrape(address)
    assert status == 200 and kind.startswith("application/openmetrics-text; version=1.0.0"), (status, kind)
    found = samples(text)
    for tenant, sessions in ("alice", 2), ("bob", 1):
        launches = len(entries(place, tenant, "launch"))
        assert launches > 0
        assert value(found, "smt_tenant_launches_total", tenant=tenant) == launches, text
        assert value(found, "smt_tenant_sessions_total", tenant=tenant) == sessions, text
    assert value(found, "smt_server_up", server="simulated") == 1
    assert value(found, "smt_server_multiprocessors") > 0
    # Another server: counters go on.
    place.command("server", "stop")
    assert value(samples(scrape(address)[2]), "smt_server_up", server="simulated") == 0
    place.run("bob", 2, 60)
    again = samples(scrape(address)[2])
    assert value(again, "smt_tenant_sessions_total", tenant="bob") == 2
    assert value(again, "smt_tenant_launches_total", tenant="bob") > value(
        found, "smt_tenant_launches_total", tenant="bob")
    assert value(again, "smt_tenant_sessions_total", tenant="alice") == 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def requests(place):
    """What is no scrape, and where it cannot listen."""
    process, address = place.listen("127.0.0.1:0")
    assert scrape(address, path="/")[0] == 404
    assert scrape(address, "POST", body="x" * 100_000)[0] == 405
    assert scrape(address, "HEAD")[2] == ""
    port = urllib.parse.urlsplit(address).port
    with socket.create_connection(("127.0.0.1", port)) as garbage:
        garbage.sendall(b"\x00\xff nonsense\r\n\r\n")
        garbage.shutdown(socket.SHUT_WR)
        garbage.recv(4096)
    assert scrape(address)[0] == 200
    assert "Address already in use" in place.command("metrics", "--listen", str(port), code=1)
    for wrong in "0.0.0.0:1", "nowhere", "70000":
        assert "--listen wants" in place.command("metrics", "--listen", wrong, code=2)
    path = place.folder / "metrics.sock"
    for _ in range(2):   # the second takes the place of one that was killed
        process, address = place.listen(f"unix:{path}")
        assert path.stat().st_mode & 0o777 == 0o600
        assert scrape(address)[0] == 200
        assert "Address already in use" in place.command("metrics", "--listen", f"unix:{path}", code=1)
        process.kill()
        process.wait()
    process, address = place.listen(f"unix:{path}")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0 and not path.exists()
    path.write_text("kept")
    assert "a file that is no socket" in place.command("metrics", "--listen", f"unix:{path}", code=1)
    assert path.read_text() == "kept"


def check_dashboard(ask_for):
    """Its queries are understood, and those that must have something do. The program that runs has it all."""
    queries = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"]
               for target in panel["targets"]]
    of_none = "p99", "unsupported", "faults", "stop_seconds"   # no program here has such
    for query in queries:
        for name, text in (("$__rate_interval", "30s"), ("$__range", "30s"), ("$server", ".*")):
            query = query.replace(name, text)
        assert "$" not in query, query
        # "or vector(0)": an answer in any case.
        answer = ask_for(f"({query}) or vector(0)" if any(each in query for each in of_none) else query)
        if "weight" in query:
            assert answer == {"heavy": 1}, (query, answer)
    share = ask_for(re.search(r"`(rate\(smt_tenant_gpu_time.*)`", USAGE.read_text())[1])
    assert share["heavy"] == 1, share


def prometheus(place):
    """Debian's Prometheus reads it, and has the same figures."""
    unpacked = pathlib.Path(place.smt).parent.parent / "prometheus/usr/bin"   # by bootstrap.sh
    program = shutil.which("prometheus", path=f"{os.environ['PATH']}:{unpacked}")
    if not program:
        print("prometheus is not installed")
        sys.exit(SKIPPED)
    _, address = place.listen("0")
    place.run("alice", 4, 60)
    wanted = len(entries(place, "alice", "launch"))
    config = place.folder / "prometheus.yml"
    config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: smt\n  static_configs:\n"
                      f"  - targets: ['{urllib.parse.urlsplit(address).netloc}']\n")
    with socket.socket() as free:   # Prometheus does not say which port it found
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    heavy = place.start(place.smt, "run", "--device", "sim", "--tenant", "heavy", "--weight", "3", "--",
                        str(pathlib.Path(place.smt).parent / "sim_work"), "1000000", "16", "1")
    place.start(program, f"--config.file={config}", f"--storage.tsdb.path={place.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}", "--log.level=error")

    def ask_for(query):
        """What it answers, once that is something."""
        path = "/api/v1/query?query=" + urllib.parse.quote(query)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                status, _, text = scrape(f"http://127.0.0.1:{port}/", path=path)
                assert status in (200, 503), (query, text)   # 503: it is just starting
                result = json.loads(text)["data"]["result"] if status == 200 else []
            except (ConnectionError, json.JSONDecodeError):
                result = []
            if result:
                return {each["metric"].get("tenant"): float(each["value"][1]) for each in result}
            assert time.monotonic() < deadline, f"Prometheus has no figures: {query}"
            time.sleep(0.1)

    assert ask_for('sum(smt_tenant_launches_total{tenant="alice"})') == {None: wanted}
    check_dashboard(ask_for)
    heavy.kill()
    targets = json.loads(scrape(f"http://127.0.0.1:{port}/", path="/api/v1/targets")[2])
    targets = targets["data"]["activeTargets"]
    assert [each["health"] for each in targets] == ["up"], targets


def main():
    smt, name = sys.argv[1:]
    scenario = {each.__name__: each for each in (figures, requests, prometheus)}[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Place(smt, folder)
        try:
            scenario(place)
        finally:
            place.clean_up()


if __name__ == "__main__":
    main()
