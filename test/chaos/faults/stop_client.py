"""a client is stopped (SIGSTOP) for longer than its lease, and goes on"""

ON = "session"


def run(chaos, random):
    process, _ = chaos.load.clients[random.choice(sorted(chaos.load.clients))]
    chaos.pause(process.pid, 0.5 + random.random() * 9)
