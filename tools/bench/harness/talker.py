"""A process that answers with JSON lines, of which none is waited for beyond a deadline."""
import json
import queue
import subprocess
import threading
import time


class Talker:
    """Other lines of it are passed over. Its stderr goes to a file."""

    def __init__(self, command, environment, errors):
        self.errors = errors
        with open(errors, "w") as file:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True,
                                            stdout=subprocess.PIPE, stderr=file, start_new_session=True)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                self.answers.put(found)
        self.answers.put(None)

    def tell(self, line):
        """A line of its input; nothing happens where it has ended."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def next(self, deadline):
        """None: it has ended, or it is too late; `ended()` says which."""
        try:
            return self.answers.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def ended(self):
        try:
            self.process.wait(1)   # behind its last line
        except subprocess.TimeoutExpired:
            pass
        return self.process.poll() is not None

    def why(self, characters=600):
        """What it said at the end."""
        self.ended()   # its output may end before it does
        with open(self.errors, errors="replace") as file:
            said = file.read().strip()[-characters:]
        return f"exit code {self.process.poll()}: {said}"

    def finish(self, seconds=10):
        """By the end of its input. Its exit code, None where it goes on."""
        try:
            self.process.stdin.close()
            return self.process.wait(seconds)
        except (OSError, subprocess.TimeoutExpired):
            return self.process.poll()

    def end(self):
        """It is over from now on, whatever it did."""
        for how in (self.process.terminate, self.process.kill):
            if self.process.poll() is None:
                how()
                try:
                    self.process.wait(5)
                except subprocess.TimeoutExpired:
                    pass
