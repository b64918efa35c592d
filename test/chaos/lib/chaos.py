"""A run: servers, clients, faults, and what the checker finds."""

import importlib
import pathlib
import queue
import random
import signal
import sys
import threading
import time

from adjustable_clock import AdjustableClock
from history import violations
from load import Load, stored
from processes import send, wait_for
from servers import Servers

HERE = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(HERE / "faults"))

# Work of a client, its arguments, how many of them.
WORKS = [
    ("lease", {"keys": ["job/1", "job/2", "job/3", "job/4"], "ttl": 4}, 3),
    ("lease", {"keys": ["job/5"], "ttl": 8}, 1),  # longer than lease_durable_after
    ("save", {}, 2),
    ("transition", {}, 2),
    ("mark", {"ttl": 2}, 2),
    ("pay", {}, 2),
    ("job", {}, 2),
    ("cart", {}, 3),
    ("node", {}, 2),
]

# What a program can do wrong, for --plant: what the checker must find then.
MISTAKES = {
    "no_assert": "writes under a token that is over",
    "no_grace": "leases granted twice",
    "no_claim": "effects twice",
    "no_reservation": "stock that does not add up",
    "no_history": "changes without one entry of history",
}
CRASHES = ["kill_backend", "kill_postmaster"]  # after which alone the grace matters


def faults():
    names = sorted(path.stem for path in (HERE / "faults").glob("*.py"))
    return {name: importlib.import_module(name) for name in names}


def plan(on, seed, mistake):
    """(pause before it, name, seed of its choices) without an end. All kinds come before one comes again."""
    choices = random.Random(f"{seed} {on}")
    names = [name for name, fault in faults().items() if fault.ON == on]
    if mistake == "no_grace" and on == "server":
        names = CRASHES
    while True:
        for name in choices.sample(names, len(names)):
            pause = choices.uniform(2, 6) if on == "server" else choices.uniform(0.2, 2)
            yield pause, name, choices.random()


class Chaos:
    def __init__(self, directory, programs, clock, minutes, seed, mistake=None, say=print):
        """clock: the library of compile_clock(). say: prints a line for people."""
        self.seconds, self.seed, self.say = minutes * 60, seed, say
        self.directory = directory
        self.begin = time.monotonic()
        self.operations = []  # of our own
        self.violations = {}
        self.done = {}  # how often each fault was made
        self.failed = queue.Queue()
        self.paused, self.lock = set(), threading.Lock()
        self.clocks = {name: AdjustableClock(clock, directory / f"clock.{name}") for name in ("clients", "servers")}
        self.servers = Servers(directory, programs, self.clocks["servers"].variables, mistake)
        works = [(name, dict(arguments)) for name, arguments, count in WORKS for _ in range(count)]
        if mistake == "no_grace":  # leases that are still held after a crash of a slow machine
            for _, arguments in works[:4]:
                arguments["ttl"] = 20
        self.load = Load(
            directory, self.servers.addresses(), works, seed=seed, impatient=0.3, mistake=mistake, proxy=self.servers.port,
            environment=self.clocks["clients"].variables,
        )  # fmt: skip

    # --- What faults use ---------------------------------------------------------------------------------------------

    def pause(self, pid, seconds):
        """SIGSTOP, and SIGCONT later, while other faults go on."""
        with self.lock:
            send(signal.SIGSTOP, [pid])
            self.paused.add(pid)
        threading.Timer(seconds, self.go_on, [pid]).start()

    def go_on(self, pid):
        with self.lock:
            if pid in self.paused:
                self.paused.remove(pid)
                send(signal.SIGCONT, [pid])

    def step_clock(self, name, seconds):
        if name == "servers":
            self.operations.append({"do": "clock", "sent": time.monotonic(), "answered": time.monotonic()})
        self.clocks[name].step(seconds)

    def found(self, kind, what):
        self.violations.setdefault(kind, []).extend(what)

    # --- The run -----------------------------------------------------------------------------------------------------

    def run(self):
        self.servers.create(self.load.setup)
        try:
            self.load.start()
            self.load.wait_for_all()
            self.begin = time.monotonic()
            threads = [threading.Thread(target=self.make_faults, args=[on]) for on in ("server", "session")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.end()
        finally:
            for pid in list(self.paused):
                self.go_on(pid)
            self.load.stop_all()
            self.servers.stop()

    def make_faults(self, on):
        made = faults()
        try:
            for pause, name, seed in plan(on, self.seed, self.servers.mistake):
                if self.over(pause) or not self.failed.empty():
                    return
                time.sleep(pause)
                self.say_fault(on, made[name])
                made[name].run(self, random.Random(seed))
                self.done[name] = self.done.get(name, 0) + 1
                if on == "server":
                    self.servers.ensure()
                    self.load.wait_for_all()
        except Exception as error:
            self.failed.put((name, error))

    def over(self, pause):
        return time.monotonic() + pause - self.begin > self.seconds

    def say_fault(self, on, fault):
        left = max(0, self.seconds - (time.monotonic() - self.begin))
        text = " ".join(fault.__doc__.split())
        self.say(f"{int(left) // 60}:{int(left) % 60:02} left   {'' if on == 'server' else '   '}{text}")

    def end(self):
        if not self.failed.empty():
            name, error = self.failed.get()
            raise RuntimeError(f"after {name}: {error!r}") from error
        for pid in list(self.paused):
            self.go_on(pid)
        self.servers.ensure()
        self.load.wait_for_all()
        self.operations += self.load.stop()
        self.step_clock("servers", 3600)
        wait_for("the end of all reservations", lambda: self.servers.must("SELECT count(*) FROM interlock.reservations") == [(0,)])
        for kind, what in violations(self.operations, stored(self.servers.primary.address, self.load.names())).items():
            self.found(kind, what)
        broken = "SELECT concat_ws(': ', rel, finding, evidence) FROM interlock.advise() WHERE severity = 'broken'"
        self.found("findings of advise", [finding for (finding,) in self.servers.must(broken)])
        self.found("crashes", [line for server in (self.servers.one, self.servers.two) for line in server.crashes()])
