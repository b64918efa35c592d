"""the clock of all clients or of the servers is set ahead, or is behind for a few seconds"""

import time

ON = "session"


def run(chaos, random):
    """Ahead it stays: what has a deadline by the clock expires early. A server whose clock stayed behind would keep a marker of
    a client that is gone for as long as that."""
    for name in random.sample(["clients", "servers"], random.randint(1, 2)):
        seconds = random.choice([3, 60, 3600])
        if random.random() < 0.5:
            chaos.step_clock(name, seconds)
        else:
            chaos.step_clock(name, -seconds)
            time.sleep(random.random() * 4)
            chaos.step_clock(name, seconds)
