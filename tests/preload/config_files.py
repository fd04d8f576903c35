#!/usr/bin/env python3
"""Settings from the environment, the user's file and the administrator's, as programs and servers meet them.

    config_files.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands.
"""

import os
import re
import subprocess

from run import PATIENCE, smt
from scenarios import NOT_READY, OUT_OF_MEMORY, bystander, finish, gone, main, wait_for
from server_life import by_hand, log_of


def files(place, user, system):
    """For all that is started from here on."""
    folder = place.folder / "config"
    folder.mkdir(exist_ok=True)
    (folder / "smt.toml").write_text(user)
    (place.folder / "etc.toml").write_text(system)
    os.environ.update(XDG_CONFIG_HOME=str(folder), SMT_SYSTEM_FILE=str(place.folder / "etc.toml"))
    return folder / "smt.toml", place.folder / "etc.toml"


def command(place, *words, **environment):
    return subprocess.run([place.program, *words], env=os.environ | environment, capture_output=True,
                          text=True, timeout=PATIENCE)


def config(place, *options, code=0):
    done = command(place, "config", *options)
    assert done.returncode == code, done
    return done.stdout


def rows(text):
    return {line.split()[0]: re.split(r"  +", line.strip())[1:] for line in text.splitlines() if line}


def policy_of(place):
    return re.search(r"policy +(\S+)", place.status())[1]


def stop(place):
    pid = place.server_pid()
    smt(place.program, "server", "stop")
    wait_for(lambda: gone(pid), "the server has ended")


def calls_of(place):
    """What the driver was asked."""
    return (place.folder / "calls").read_text()


def precedence_of_settings(place):
    """The environment, the user's file, the administrator's: for the server, and what a program says to
    it."""
    files(place, user='policy = "fair"\nmemory_limit = "64M"\n',
          system='policy = "fifo"\nmemory_limit = "1M"\n[limits]\nlanes = 4\nhost_memory = "64M"\n'
                 'connections = 8\n')
    assert place.run("charges")[0] == "all counted\n"   # it needs both limits of 64M
    assert policy_of(place) == "fair"
    assert "cuInit connections=8\n" in calls_of(place), calls_of(place)
    crowd = place.start("crowd", 9, tenant="crowd")
    assert crowd.stdout.readline() == "begun\n"
    crowd.stdin.write("go\n")
    crowd.stdin.flush()
    assert crowd.stdout.readline() == f"6 of 9 threads: error {OUT_OF_MEMORY}\n"
    finish(crowd)
    stop(place)
    os.environ["SMT_POLICY"] = "hpf"
    place.run("scale")
    assert policy_of(place) == "hpf"
    stop(place)


def files_without_the_command(place):
    """A server that a program starts reads the files, too. For a wrong value it has the default and says
    so."""
    files(place, user='idle_seconds = "soon"\n', system='policy = "fair"\n')
    done = by_hand(place, "scale")
    assert done.returncode == 0, done
    assert policy_of(place) == "fair"
    assert "cuInit connections=32\n" in calls_of(place), calls_of(place)
    problem = "smt.toml:1: idle_seconds is 'soon'; it takes a number from 0 to 86400; the default is used"
    assert problem in log_of(place), log_of(place)
    stop(place)


def changed_files(place):
    """A file that changed counts from the next server on, and `smt run` says so."""
    held = bystander(place)
    files(place, user='policy = "fair"\n', system="")
    errors = place.run("scale", tenant="other")[1]
    assert "SMT_POLICY is fair here and priority in the server" in errors and errors.count("\n") == 1, errors
    place.open(1)
    finish(held)


def wrong_settings(place):
    """A wrong value keeps a program from starting, wherever it stands."""
    user, system = files(place, user='polcy = "fair"\n', system="weight = 0\n")
    done = command(place, "run", "--", "true", SMT_SIM="smss=3")
    assert done.returncode == 1, done
    for text in (f"{user}:1: polcy is no setting; do you mean policy?",
                 f"{system}:1: weight is '0'; it takes a number from 0.001 to 1000",
                 "smss in SMT_SIM is none of its items; do you mean sms?"):
        assert text in done.stderr, done
    assert command(place, "server", "start").returncode == 1
    done = by_hand(place, "begin", env={"SMT_SMS": "lots"})
    assert done.stdout == f"cuInit {NOT_READY}\n" and done.stderr.count("\n") == 1, done
    assert "SMT_SMS is 'lots'; it takes a number from 0 to 4096" in done.stderr, done


def shown_settings(place):
    """smt config: values, where they come from, and what is wrong."""
    user, system = files(place, user="[sim]\nsms = 4\n",
                         system='policy = "fair"\n[sim]\nsms = 5\ngrace = 7\n')
    os.environ.update(SMT_SIM="tenants=2", SMT_WEIGHT="2.5")
    found = rows(config(place))
    assert found["sim.sms"] == ["4", str(user)], found
    assert found["sim.grace"] == ["7", str(system)] and found["policy"] == ["fair", str(system)], found
    assert found["sim.tenants"] == ["2", "environment"] and found["weight"] == ["2.5", "environment"], found
    assert found["idle_seconds"] == ["60", "default"], found
    assert found["compile.workers"] == ["(half of the cores, 2 to 8)", "default"], found
    assert "stress" not in found and "stress" in rows(config(place, "--all"))
    changed = rows(config(place, "--set"))
    assert {"sim.sms", "sim.grace", "sim.tenants", "policy", "weight", "runtime_dir"} <= set(changed), changed
    assert "fallback" not in changed, changed
    os.environ.update(SMT_WEIGHT="heavy", SMT_POLCY="fair", SMT_MAPPING="1")
    text = config(place, code=1)
    assert "wrong: SMT_WEIGHT is 'heavy'; it takes a number from 0.001 to 1000" in text, text
    assert "note: SMT_POLCY is no setting of smt; do you mean SMT_POLICY?" in text, text
    assert "note: SMT_MAPPING is not read any more: it is mapping in SMT_JOURNAL" in text, text


if __name__ == "__main__":
    main([precedence_of_settings, files_without_the_command, changed_files, wrong_settings, shown_settings])
