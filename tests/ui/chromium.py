"""Headless Chromium by the DevTools protocol, over its pipe: JSON texts that end with a zero byte."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 60
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--disable-extensions", "--disable-background-networking", "--disable-component-update",
           "--disable-sync", "--no-default-browser-check", "--force-device-scale-factor=1", "--lang=en-US")
HIGH = 10   # above 3 and 4, Chromium's ends of the pipes
KEYS = {"Tab": 9, "Enter": 13, "ArrowUp": 38, "ArrowDown": 40, "End": 35, "Home": 36, " ": 32}   # Windows'
TEXTS = {"Enter": "\r", " ": " "}
SHIFT, CONTROL = 8, 2   # of Input.dispatchKeyEvent


def program():
    """Chromium's path, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    """A process with one tab. `errors` and `requests` are what came of the page since it began."""

    def __init__(self, path):
        self.folder = tempfile.TemporaryDirectory()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "SMT_"))}
        environment.update(HOME=self.folder.name)
        (theirs_in, self.to), (self.out, theirs_out) = os.pipe(), os.pipe()
        # High numbers, which those that Chromium reads and writes do not collide with.
        theirs = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, HIGH) for each in (theirs_in, theirs_out)]
        command = ["bash", "-c", 'exec 3<&"$0" 4>&"$1" "${@:2}"', *map(str, theirs), path, *OPTIONS,
                   "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}/data", "about:blank"]
        self.said = pathlib.Path(self.folder.name) / "said"
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(command, env=environment, pass_fds=theirs, stdout=said,
                                            stdin=subprocess.DEVNULL, stderr=said, start_new_session=True)
        for each in (theirs_in, theirs_out, *theirs):
            os.close(each)
        self.number, self.kept, self.session = 0, b"", None
        self.errors, self.requests = [], []
        tab = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=tab["targetId"],
                                 flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network", "Accessibility":
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        os.close(self.to)
        while os.read(self.out, 65536):   # until all its processes have closed it
            pass
        os.close(self.out)
        shutil.rmtree(self.folder.name, ignore_errors=True)
        self.folder.cleanup()

    # ---- Messages

    def _next(self, end):
        while b"\0" not in self.kept:
            ready, _, _ = select.select([self.out], [], [], max(0, end - time.monotonic()))
            assert ready, "Chromium does not answer:\n" + self.said.read_text(errors="replace")
            data = os.read(self.out, 1 << 20)
            assert data, "Chromium ended:\n" + self.said.read_text(errors="replace")
            self.kept += data
        text, _, self.kept = self.kept.partition(b"\0")
        return json.loads(text)

    def _take(self, event):
        what, about = event.get("method"), event.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(about["exceptionDetails"]))
        elif what == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(about["args"]))
        elif what == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(about["entry"]))
        elif what == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._next(end)
            if answer.get("id") != self.number:
                self._take(answer)
                continue
            assert "error" not in answer, (method, answer)
            return answer["result"]

    # ---- What a person does and sees

    def run(self, script):
        """The value of an expression, or of its promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, (script, done)
        return done["result"].get("value")

    def wait_for(self, script):
        end = time.monotonic() + PATIENCE
        while not (found := self.run(script)):
            assert time.monotonic() < end, (script, self.errors, self.run("document.body.innerText"))
            time.sleep(0.05)
        return found

    def key(self, name, modifiers=0):
        """Pressed and released; a single character is typed."""
        code = KEYS.get(name, ord(name.upper()[0]) if name.isalnum() else 0)   # "." has that of Delete
        text = "" if modifiers & CONTROL else TEXTS.get(name, name if len(name) == 1 else "")
        event = {"key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers,
                 **({"commands": ["selectAll"]} if modifiers & CONTROL and name == "a" else {})}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown",
                  **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        for each in text:
            self.key(each)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def prefer(self, **features):
        """prefers-color-scheme and so on."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-" + name.replace("_", "-"), "value": value}
                            for name, value in features.items()])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
