"""What the log of a server says of its standby and of takeovers."""
import glob
import os
import re
import time

PATIENCE = 60


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def whole_log(runtime):
    """Of all servers there: each takeover begins another log."""
    text = ""
    for path in glob.glob(os.path.join(runtime.directory, "*.log*")):
        try:
            with open(path, errors="replace") as file:
                text += file.read()
        except OSError:   # it was moved meanwhile
            pass
    return text


def await_standby(runtime, pid):
    """Until the standby of that server is ready."""
    said = re.compile(rf"smtd\[{pid}\] a standby, process \d+, is ready")
    return wait_for(lambda: said.search(whole_log(runtime)))


def takeover(runtime, pid):
    """The one from that server, if there was one, and what its steps took, of the server and of sessions."""
    log = whole_log(runtime)
    found = re.search(rf"smtd\[{pid}\] process (\d+) serves from now on, (\d+) of (\d+) sessions .*; after "
                      r"(\S+) ms \((.*)\)", log)
    if not found:
        return {}
    sessions = re.findall(rf"smtd\[{found[1]}\] .* goes on here, made again in (.*)", log)
    return {"carried": int(found[2]), "sessions": int(found[3]), "takeover_ms": float(found[4]),
            "steps": found[5], "steps_of_sessions": sessions}


def reason_of_end(runtime, tenant):
    """Why a session was not carried over; empty: it was."""
    found = re.search(rf"\({tenant}, pid \d+\): it ends, as it cannot go on in another "
                      r"process: (.*)", whole_log(runtime))
    return found[1] if found else ""
