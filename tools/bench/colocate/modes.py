"""Modes: how programs share the GPU. A mode is a name and, behind commas, settings of its own:

    time-slicing  mps  mps-priority  mps-half       without smt
    smt:POLICY                                      any policy that the server knows; smt is its default
    smt:slo  smt:slo@1.25                           likewise; services have SMT_SLOWDOWN, 1.1 or that number,
                                                    if the mode says no other target
    smt:fair,first.SMT_WEIGHT=2                     [ROLE.]VARIABLE=VALUE; without a role all programs have it
    smt:slo,service.SMT_P99=p99*2                   a value of p50 or p99, times a factor: in ms, of the
                                                    service alone, natively and in a closed loop

Roles: service and training, in `services`; first and second, in `trainings` (both are trainings, too);
server, for smt's. Of two settings of one variable the last counts. Under smt services are urgent
(service.SMT_PRIORITY=high), if nothing else is said.
"""
import collections
import re

ROLES = {"service": ("service",), "training": ("training", "first", "second"), "first": ("first",),
         "second": ("second",), "server": ("server",)}
PRESETS = {
    "time-slicing": (),
    "mps": (),
    "mps-priority": ("training.CUDA_MPS_CLIENT_PRIORITY=1",),   # a service has 0, which is above it
    "mps-half": ("training.CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",),
}
SMT = ("service.SMT_PRIORITY=high",)
DEFAULT_POLICY = "priority"
SLOWDOWN = "1.1"   # of services under policy slo
TARGETS = {"SMT_P99", "SMT_SLOWDOWN"}
SETTING = re.compile(r"(?:(\w+)\.)?([A-Z]\w*)=(.*)")
MEASURED = re.compile(r"(p50|p99)(?:\*([\d.]+))?")

Setting = collections.namedtuple("Setting", "role variable value")


class Mode:
    """family: native, mps or smt. Two modes of one family share processes whose variables are the same."""

    def __init__(self, text):
        self.name = text
        head, *settings = text.split(",")
        kind, _, self.policy = head.partition(":")
        if kind == "smt":
            self.policy, _, slowdown = (self.policy or DEFAULT_POLICY).partition("@")
            self.family, first = "smt", SMT
            if self.policy == "slo" and not TARGETS & {self.setting(each).variable for each in settings}:
                first += (f"service.SMT_SLOWDOWN={slowdown or SLOWDOWN}",)
            elif slowdown:
                raise ValueError(f"{head}: a number is the slowdown of slo without another target")
        elif head in PRESETS:
            self.family, first = "mps" if head.startswith("mps") else "native", PRESETS[head]
        else:
            raise ValueError(f"no mode {head}: {', '.join(PRESETS)}, smt:POLICY")
        self.settings = [self.setting(each) for each in (*first, *settings)]

    @staticmethod
    def setting(text):
        found = SETTING.fullmatch(text)
        if not found or found[1] and found[1] not in ROLES:
            raise ValueError(f"{text} is no setting: [ROLE.]VARIABLE=VALUE, ROLE of {', '.join(ROLES)}")
        return Setting(*found.groups())

    def variables(self, role, alone=None):
        """Of a program in this role, with what its service has alone ({p50, p99} in ms); LookupError: that is
        not known yet."""
        wanted = [each for each in self.settings
                  if role in (ROLES[each.role] if each.role else sum(ROLES.values(), ())) and
                  not (role == "server" and not each.role)]
        return {each.variable: self.resolved(each.value, alone) for each in wanted}

    @staticmethod
    def resolved(value, alone):
        found = MEASURED.fullmatch(value)
        if not found:
            return value
        if not alone:
            raise LookupError(value)
        return f"{alone[found[1]] * float(found[2] or 1):.3f}"


NATIVE = Mode("time-slicing")
