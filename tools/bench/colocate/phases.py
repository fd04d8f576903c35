"""What is measured, phase by phase: plans of the three experiments. In odd rounds all is in reverse order."""
import collections
import zlib

import names
from modes import NATIVE

OVERHEAD = 0.3      # of a phase, besides: commands, the last steps
CALIBRATION = 1.5   # seconds
ALONE, SMT_ALONE = "alone", "smt-alone"

# role is that of the mode's settings; place tells two processes of one role apart
Part = collections.namedtuple("Part", "place role program")
SERVICE = lambda program: Part("service", "service", program)    # noqa: E731
FIRST = lambda program: Part("first", "training", program)       # noqa: E731
SECOND = lambda program: Part("second", "training", program)     # noqa: E731


class Phase:
    """mode is how its programs run, label what the rows call it. load: of a service's closed-loop rate;
    None: in a closed loop."""

    def __init__(self, experiment, mode, parts, round_number, label=None, load=None):
        self.experiment, self.mode, self.parts, self.round = experiment, mode, parts, round_number
        self.label, self.load = label or mode.name, load

    def seed(self, seed):
        """The same requests in all modes of a round."""
        return zlib.crc32(f"{seed} {self.round} {self.parts[0].program} {self.load}".encode())

    def programs(self):
        return {part.place: part.program for part in self.parts}

    def seconds(self, options, rate=None):
        """Longer where there would be too few requests. rate: of the service alone, in a closed loop."""
        if self.experiment == "calibrate":
            return min(CALIBRATION, options.seconds)
        if self.load is None:
            return options.seconds
        wanted = options.requests / (self.load * (rate or 1e3 / names.parse(self.parts[0].program).guess_ms))
        return min(max(options.seconds, wanted), max(options.seconds, options.longest))

    def cost(self, options, rate=None):
        """About the seconds that it takes, as long as nothing queues up."""
        seconds = self.seconds(options, rate) + OVERHEAD
        if any(names.is_example(part.program) for part in self.parts):
            return 2 * seconds + 3   # its start and its end are outside of the window
        return seconds + options.lead

    def text(self):
        load = f" load {self.load}" if self.load is not None else ""
        return f"{self.experiment} {' + '.join(self.programs().values())}{load} {self.label}"


def smt_of(modes):
    return next((mode for mode in modes if mode.family == "smt"), None)


def alone(experiment, modes, part, round_number, load=None):
    """Natively, and under smt where the modes have it."""
    found = [Phase(experiment, NATIVE, [part], round_number, ALONE, load)]
    if smt := smt_of(modes):
        found.append(Phase(experiment, smt, [part], round_number, SMT_ALONE, load))
    return found


def rounds_of(options, one_round):
    for number in range(options.rounds):
        phases = list(one_round(number))
        yield from phases if number % 2 == 0 else reversed(phases)


def services(options):
    """Services beside trainings: pairs, loads, modes; and each alone."""
    for service in options.services:
        yield Phase("calibrate", NATIVE, [SERVICE(service)], 0, ALONE)

    def one_round(number):
        for training in options.trainings:
            yield from alone("services", options.modes, FIRST(training), number)
        for service in options.services:
            for load in options.loads:
                yield from alone("services", options.modes, SERVICE(service), number, load)
                for training in options.trainings:
                    for mode in options.modes:
                        yield Phase("services", mode, [SERVICE(service), FIRST(training)], number, load=load)
    yield from rounds_of(options, one_round)


def trainings(options):
    """Two side by side: trainings, or a training and an example of the project; and each alone."""
    everything = dict.fromkeys(name for pair in options.pairs for name in pair)
    for name in filter(names.is_example, everything):
        yield Phase("calibrate", NATIVE, [FIRST(name)], 0, ALONE)

    def one_round(number):
        for name in everything:
            yield from alone("trainings", options.modes, FIRST(name), number)
        for first, second in options.pairs:
            for mode in options.modes:
                yield Phase("trainings", mode, [FIRST(first), SECOND(second)], number)
    yield from rounds_of(options, one_round)


def closed(options):
    """Each program alone in a closed loop, natively and under smt in turns."""
    smt = smt_of(options.modes)

    def one_round(number):
        for name in options.closed:
            part = FIRST(name) if names.parse(name).training else SERVICE(name)
            yield from alone("closed", [smt], part, number)
    yield from rounds_of(options, one_round)


EXPERIMENTS = {"services": services, "trainings": trainings, "closed": closed}


def plan(options):
    """{experiment: phases}"""
    return {name: list(EXPERIMENTS[name](options)) for name in options.experiments}
