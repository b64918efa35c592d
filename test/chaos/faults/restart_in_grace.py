"""kill -9 of the primary's postmaster, and again in the grace after it"""

import time

ON = "server"


def run(chaos, random):
    for _ in range(random.randint(2, 3)):
        chaos.servers.primary.kill()
        chaos.servers.primary.start()
        time.sleep(random.random() * 3)
