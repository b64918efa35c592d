"""Payments with an idempotency key: claimed and completed in several transactions, or in one call of run_once."""

import json
import random
import time

KINDS = ["pay", "once"]
SETUP = """
SELECT interlock.define_idempotency_scope('pay', stale_after => '5 s'), interlock.define_idempotency_scope('once');
CREATE FUNCTION pay_once(request jsonb) RETURNS jsonb LANGUAGE sql
    AS $$ INSERT INTO effect VALUES (request->>'op', 'once') RETURNING jsonb_build_object('paid', op) $$;
"""


def work(client):
    if random.random() < 0.4:
        run_once(client)
    else:
        claim_and_complete(client)


def run_once(client):
    op = f"once {client.round()}"
    sent, answered, row = client.call(
        lambda execute: execute(
            "SELECT outcome FROM interlock.run_once('once', %s, 'pay_once', %s, wait => 1)", [op, json.dumps({"op": op})]
        ).fetchone()
    )
    if row and row[0] in ("completed", "replay"):
        client.record("once", (sent, answered), op=op)


def claim_and_complete(client):
    op = f"payment {client.round()}"
    for _ in range(8):
        sent, answered, row = client.call(
            lambda execute: execute("SELECT outcome, token FROM interlock.idempotency_claim('pay', %s)", [op]).fetchone()
        )
        if row is None or row[0] == "in_progress" and not client.errs("no_claim"):
            time.sleep(random.random() * 2)
            continue
        if row[0] != "replay":
            token = row[1]

            def body(execute, token=token):
                client.effect(execute, op, "pay")
                if token is not None:
                    execute("SELECT interlock.idempotency_complete('pay', %s, %s)", [op, token])

            sent, answered, _ = client.together(body)
        if answered is not None:
            client.record("pay", (sent, answered), op=op)
            return
