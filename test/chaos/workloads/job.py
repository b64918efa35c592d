"""A queue of jobs: claimed, and deleted in the transaction of their effect."""

import random
import time

KINDS = ["job"]
JOBS = 60000
SETUP = f"""
CREATE TABLE job (id int PRIMARY KEY);
INSERT INTO job SELECT generate_series(1, {JOBS});
SELECT interlock.enable_marker('job', ttl => '2 s');
"""


def stored(execute):
    return {"jobs": JOBS, "jobs_left": [key for (key,) in execute("SELECT id FROM job")]}


def work(client):
    rows = client.call(
        lambda execute: execute(
            "SELECT (key->>'id')::int FROM interlock.claim_rows('job', %s, 2, order_column => 'id')", [client.name]
        ).fetchall()
    )[2]
    for (key,) in rows or []:
        time.sleep(random.random() * random.choice([0.1, 0.1, 0.1, 3]))
        op = f"job {key}"

        def body(execute, key=key, op=op):
            client.effect(execute, op, "job")
            execute("SELECT interlock.delete_row('job', %s, %s)", [key, client.name])

        client.record("job", client.together(body)[:2], op=op, key=key)
