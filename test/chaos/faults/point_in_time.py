"""a base backup under load, restored to a point in time, where all must add up as well"""

import shutil
import time

from history import violations
from load import stored
from processes import wait_for

ON = "server"


def run(chaos, random):
    servers = chaos.servers
    servers.archive.mkdir()
    try:
        wait_for("a base backup", lambda: servers.backup(servers.restored))
        time.sleep(random.random() * 4)
        sent = time.monotonic()
        # A name for each attempt: the server may have done it without an answer.
        name, (segment,) = wait_for("a restore point", lambda: restore_point(servers))
        answered = time.monotonic()
        wait_for(
            "the archive", lambda: servers.ask("SELECT pg_switch_wal()", servers.primary) and (servers.archive / segment).exists()
        )
        time.sleep(1)  # for cp
        (servers.restored.data / "recovery.signal").touch()
        servers.restored.start(
            f"recovery_target_name={name}", "recovery_target_action=promote", f"restore_command=cp {servers.archive}/%f %p",
            "archive_mode=off", "synchronous_standby_names=",
        )  # fmt: skip
        wait_for(
            "the end of the recovery",
            lambda: servers.ask("SELECT 1 WHERE NOT pg_is_in_recovery()", servers.restored) not in (None, [[]]),
        )
        check(chaos, sent, answered)
    finally:
        servers.restored.kill()
        shutil.rmtree(servers.archive)
        shutil.rmtree(servers.restored.directory / "data", ignore_errors=True)


def restore_point(servers):
    name = f"chaos {time.monotonic_ns()}"
    answer = servers.ask(f"SELECT pg_walfile_name(pg_create_restore_point('{name}'))", servers.primary)
    return answer and (name, answer[0][0])


def past(chaos, sent, answered):
    """The history up to the restore point. Steps of the clock belong to it: markers end by them."""
    return [
        {**a, "answered": a["answered"] if (a["answered"] or answered) < sent else None}
        for a in chaos.operations + chaos.load.operations
        if a["sent"] < answered
    ]


def check(chaos, sent, answered):
    """What was acknowledged before the restore point is there, and what was sent after it is not. Tokens go on."""
    chaos.load.read()
    there = stored(chaos.servers.restored.address, chaos.load.names())
    before = past(chaos, sent, answered)
    for kind, what in violations(before, there).items():
        chaos.found(f"restored to a point in time: {kind}", what)
    later = {
        a["op"]
        for a in chaos.load.operations
        if a["sent"] > answered and a["do"] in ("write", "save", "transition", "edit", "sell")
    }
    chaos.found("restored to a point in time: what was done later", [op for op, _ in there["effects"] if op in later])
    largest = max((a["token"] for a in before if a["do"] == "acquire" and a["answered"] is not None), default=0)
    # After the grace a lease of before is held or has expired.
    token = wait_for("a new lease", lambda: chaos.servers.must(
        "SELECT token FROM interlock.acquire_lease('restored', 1)", chaos.servers.restored)[0][0])  # fmt: skip
    chaos.found("restored to a point in time: tokens that go back", [f"{token} after {largest}"] if token <= largest else [])
