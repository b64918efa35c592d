"""Leases, and writes in transactions that assert them."""

import random
import time

KINDS = ["acquire", "renew", "write"]
SETUP = """
CREATE TABLE work (op text, key text, n bigint, token bigint);
CREATE TABLE writes (key text PRIMARY KEY, n bigint);
INSERT INTO writes SELECT 'job/' || i, 0 FROM generate_series(1, 9) i;
"""


def stored(execute):
    return {"work": execute("SELECT key, n, token FROM work").fetchall()}


def work(client, keys, ttl, late=True):
    """late: a client may renew after its lease has expired, which is allowed while no other client has it."""
    key = random.choice(keys)
    sent, answered, row = client.call(
        lambda execute: execute(
            "SELECT outcome, token FROM interlock.acquire_lease(%s, %s, holder => %s)", [key, ttl, client.name]
        ).fetchone()
    )
    if row is None or row[0] != "acquired":
        return
    token = row[1]
    client.record("acquire", (sent, answered), key=key, token=token, ttl=ttl)
    end = sent + ttl
    for _ in range(random.randint(1, 6)):
        # Some clients work without a call while the server fails, and rely on their lease.
        time.sleep(random.random() * ttl / random.choice([2, 20, 20, 20]))
        write(client, key, token)
        if time.monotonic() > end - ttl / 4:
            if not late:
                break
            time.sleep(random.random() * ttl)
        if time.monotonic() > end - ttl / 2 or random.random() < 0.3:
            times = client.call(
                lambda execute: execute("SELECT interlock.renew_lease(%s, %s, %s)", [key, token, ttl]).fetchone()[0],
                before=float("inf") if late else end,
            )
            if times[1] is not None and times[2] is None:
                return
            client.record("renew", times[:2], key=key, token=token, ttl=ttl)
            if times[1] is not None:
                end = times[0] + ttl
    # Recorded first: a client that is killed during the call may have released it.
    client.record("release", (time.monotonic(), None), key=key, token=token)
    client.call(lambda execute: execute("SELECT interlock.release_lease(%s, %s)", [key, token]))


def write(client, key, token):
    op = client.new_name()
    careless = client.errs("no_assert")
    if careless:
        time.sleep(random.random() * 9)

    def body(execute):
        if not careless:
            execute("SELECT interlock.assert_lease(%s, %s)", [key, token])
        execute(
            """WITH counted AS (UPDATE writes SET n = n + 1 WHERE key = %s RETURNING n)
                   INSERT INTO work SELECT %s, %s, n, %s FROM counted""",
            [key, op, key, token],
        )
        client.effect(execute, op, "write")

    client.record("write", client.together(body)[:2], op=op, key=key, token=token)
