"""One phase: what its processes are told, and the row that their answers make."""
import os
import pathlib
import sys
import time

import names
from figures import latency_figures, rate_within
from workers import Failed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import Child, tail  # noqa: E402
from printed import ENDS, numbers, quantile  # noqa: E402

PATIENCE = 25        # seconds beyond what a phase may take
EXAMPLE_PART = 0.7   # of the phase's time an example computes, alone
now = time.monotonic


def loop_times(answer):
    """Of one behind the other: median and 99th percentile, in ms."""
    ends = [answer["start"], *answer["ends"]]
    times = [(end - begin) * 1e3 for begin, end in zip(ends, ends[1:])]
    return quantile(times, 0.5), quantile(times, 0.99)


class PhaseRun:
    def __init__(self, stage, phase, rates, alone):
        """rates: of programs alone and natively in a closed loop. alone: p50 and p99 of the first there."""
        self.stage, self.phase, self.options, self.rates = stage, phase, stage.options, rates
        self.rate = rates.get(phase.parts[0].program)
        self.seconds = phase.seconds(self.options, self.rate)
        self.keys = [stage.key(phase.mode, part.place, part.role, alone) for part in phase.parts]

    def row(self):
        """Raises Failed."""
        parts = list(zip(self.phase.parts, self.keys))
        processes = [(part, key) for part, key in parts if not names.is_example(part.program)]
        for part, key in processes:
            self.stage.worker(key).need(part.program)
        self.stage.choose(self.phase.mode)
        if len(processes) < len(parts):
            return self.beside_example(parts)
        if self.phase.load is not None:
            return self.served(processes)
        return self.side_by_side(processes)

    def answer(self, key, seconds):
        return self.stage.worker(key).answer(seconds)

    def say(self, key, *words):
        self.stage.worker(key).say(" ".join(map(str, words)))

    def served(self, processes):
        """A service whose requests arrive, and what trains beside it until they are served."""
        (service, key), others = processes[0], processes[1:]
        rate, drain = self.phase.load * self.rate, self.seconds * self.options.drain
        for part, other in others:
            self.say(other, "train", part.program, self.options.lead + self.seconds + drain + PATIENCE)
        begin = now() + self.options.lead
        self.say(key, "poisson", service.program, rate, self.seconds, self.phase.seed(self.options.seed),
                 drain, begin)
        answer = self.answer(key, self.options.lead + self.seconds + drain + PATIENCE)
        row = {"rate": rate, "wrong": answer["wrong"], **latency_figures(answer),
               "requests": [[round(1e3 * each, 4) for each in request] for request in answer["requests"]]}
        for _, other in others:
            self.say(other, "stop")
        for part, other in others:
            training = self.answer(other, PATIENCE)
            row["wrong"] |= training["wrong"]
            row["training_rate"] = rate_within(begin, begin + self.seconds, training["start"],
                                               training["ends"])
        return row

    def side_by_side(self, processes):
        """In closed loops, from now on for the same time."""
        for part, key in processes:
            self.say(key, "closed", part.program, self.options.lead + self.seconds)
        answers = [self.answer(key, self.options.lead + self.seconds + PATIENCE) for _, key in processes]
        begin = max(answer["start"] for answer in answers) + self.options.lead
        end = min(answer["start"] for answer in answers) + self.options.lead + self.seconds
        rates = [rate_within(begin, end, answer["start"], answer["ends"]) for answer in answers]
        row = {"rates": rates, "wrong": any(answer["wrong"] for answer in answers)}
        if len(answers) == 1:
            row["loop_p50"], row["loop_p99"] = loop_times(answers[0])
        return row

    def example(self, name, key, iterations):
        variables = self.stage.variables(key)
        preload = variables.pop("LD_PRELOAD", None)
        command = [os.path.join(self.options.examples, name), "--size", self.options.size, "--iterations",
                   str(iterations), "--times"]
        return Child(command, variables, preload, 60)

    def finished(self, name, child):
        done = child.finish(1)
        ends = numbers(ENDS, done["out"])
        if done["rc"] != 0 or len(ends) < 3:
            raise Failed(f"{name}: {done['rc']}: {tail(done['out'] + done['err'], 300)}")
        return ends

    def beside_example(self, parts):
        """While an example computes; its first and its last iteration bound the window. What trains beside
        it begins first, and is told when it is over."""
        workers = [(index, part, key) for index, (part, key) in enumerate(parts)
                   if not names.is_example(part.program)]
        examples = [(index, part, key) for index, (part, key) in enumerate(parts)
                    if names.is_example(part.program)]
        for _, part, key in workers:
            self.say(key, "train", part.program, 10 * self.seconds + PATIENCE)
        children = [(index, part, self.example(part.program, key, self.iterations(part.program)))
                    for index, part, key in examples]
        ends, failed = {}, None
        for index, part, child in children:
            try:
                ends[index] = self.finished(part.program, child)
            except Failed as why:   # those that train must be told, too
                failed = why
        for _, _, key in workers:
            self.say(key, "stop")
        trained = {index: self.answer(key, PATIENCE) for index, _, key in workers}
        if failed:
            raise failed
        begin, end = max(each[0] for each in ends.values()), min(each[-1] for each in ends.values())
        if end <= begin:
            raise Failed("the examples did not overlap", False)
        rates = {index: rate_within(begin, end, each[0], each[1:]) for index, each in ends.items()}
        rates.update({index: rate_within(begin, end, answer["start"], answer["ends"])
                      for index, answer in trained.items()})
        return {"rates": [rates[index] for index in range(len(parts))], "window": end - begin,
                "wrong": any(answer["wrong"] for answer in trained.values())}

    def iterations(self, name):
        return max(10, int(EXAMPLE_PART * self.seconds * self.rates.get(name, 0)))
