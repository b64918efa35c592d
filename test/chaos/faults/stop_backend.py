"""a backend is stopped (SIGSTOP) for a while, wherever it is"""

ON = "session"


def run(chaos, random):
    for pid in random.sample(backends := chaos.servers.primary.backends(), min(1, len(backends))):
        chaos.pause(pid, random.random() * 5)
