"""kill -9 of the primary's postmaster and all of its processes; it is started again"""

ON = "server"


def run(chaos, random):
    chaos.servers.primary.kill()
    chaos.servers.primary.start()
