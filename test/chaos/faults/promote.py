"""kill -9 of the primary; the standby is promoted, and a base backup becomes its standby"""

ON = "server"


def run(chaos, random):
    chaos.servers.primary.kill()
    chaos.servers.promote()
    chaos.servers.make_standby()
