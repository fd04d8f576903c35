"""What watches a server: smt metrics that is scraped, and smt ui with a page open, whose requests are made
here as tools/ui/page/page.js makes them."""
import http.client
import json
import re
import subprocess
import threading
import time
import urllib.parse

PATIENCE = 20
FIRST = 0.1   # seconds until the first request: within what is measured
SCRAPES_A_SECOND, FRAMES_A_SECOND = 1, 10
FIGURES_FRAMES = 50   # kFiguresFrames of page.js


class Reader:
    """A process of smt, and a thread that asks it so often, at even distances, from begin() to the end."""
    words, a_second = (), 0

    def __init__(self, smt, environment):
        self.process = subprocess.Popen([smt, *self.words], env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        self.answers, self.problem, self.over = 0, None, threading.Event()
        try:
            line = self.process.stdout.readline().strip()
            found = urllib.parse.urlsplit(line)
            if found.scheme != "http":
                raise RuntimeError(f"smt {self.words[0]} says: {line}")
            self.token = found.fragment
            self.connection = http.client.HTTPConnection(found.netloc, timeout=PATIENCE)
            self.ask()   # what the journal has already is read before anything is measured
        except Exception:
            self.process.kill()
            self.process.communicate()
            raise
        self.thread = threading.Thread(target=self._run, daemon=True)

    def begin(self):
        self.thread.start()

    def _run(self):
        due = time.monotonic() + FIRST
        try:
            while not self.over.wait(max(0, due - time.monotonic())):
                self.ask()
                self.answers += 1
                due = max(due + 1 / self.a_second, time.monotonic())
        except (OSError, http.client.HTTPException, ValueError, RuntimeError) as error:
            self.problem = f"smt {self.words[0]}: {error!r}"

    def get(self, path, headers):
        self.connection.request("GET", path, headers=headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:200]!r}")
        return text

    def stop(self):
        """No further request; one under way is counted."""
        self.over.set()
        if self.thread.is_alive():
            self.thread.join(PATIENCE)

    def end(self):
        self.stop()
        self.connection.close()
        self.process.terminate()
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


class Scraped(Reader):
    words, a_second = ("metrics", "--listen", "0"), SCRAPES_A_SECOND

    def ask(self):
        text = self.get("/metrics", {}).decode()
        if not re.search(r"^smt_tenant_launches_total\{.*\} [1-9]", text, re.MULTILINE):
            raise RuntimeError("there are no launches in the figures")


class Opened(Reader):
    words, a_second = ("ui", "--listen", "0"), FRAMES_A_SECOND

    def __init__(self, *arguments):
        self.shown, self.frames = None, []
        super().__init__(*arguments)

    def ask(self):
        begin, over = (self.shown["to"] if self.shown else ""), (self.frames[0] if self.frames else "")
        text = self.get(f"/state?from={begin}&over={over}", {"Authorization": f"Bearer {self.token}"})
        self.shown = json.loads(text)
        if not self.shown["server"] or not self.shown["tenants"]:
            raise RuntimeError("the page has no server and no tenants")
        if self.shown["sms"]:
            self.frames = [*self.frames, self.shown["from"]][-FIGURES_FRAMES:]
