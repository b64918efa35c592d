"""restart of the primary"""

ON = "server"


def run(chaos, random):
    chaos.servers.primary.stop(random.choice(["fast", "immediate"]))
    chaos.servers.primary.start()
