"""Carts that are reserved, confirmed in part, cancelled or left to expire, and single items that are taken or returned."""

import json
import random
import time

KINDS = ["sell"]
SETUP = """
CREATE TABLE item (id int PRIMARY KEY, stocked int NOT NULL, stock int NOT NULL CHECK (stock >= 0));
INSERT INTO item SELECT i, n, n FROM generate_series(1, 30) i, LATERAL (SELECT CASE WHEN i = 1 THEN 100000 ELSE 200 END AS n) a;
SELECT interlock.enable_escrow('item', 'stock');
CREATE TABLE sold (op text, item int, n int);
"""

ITEMS = range(1, 31)


def stored(execute):
    return {
        "stock": execute(
            """SELECT i.id, i.stocked, interlock.escrow_value('item', i.id, 'stock'),
                      (SELECT coalesce(sum(amount), 0) FROM interlock.reservations WHERE key = format('{%s}', i.id)),
                      (SELECT coalesce(sum(n), 0) FROM sold WHERE item = i.id)
                 FROM item i"""
        ).fetchall(),
        "books": execute("SELECT key, difference FROM interlock.escrow_check('item') WHERE difference <> 0").fetchall(),
    }


def work(client):
    if random.random() < 0.4:
        take(client)
    else:
        cart(client)


def sell(client, execute, op, sales):
    client.effect(execute, op, "sell")
    for item, n in sales:
        execute("INSERT INTO sold VALUES (%s, %s, %s)", [op, item, n])


def take(client):
    op, item, n = client.new_name(), random.choice([1, random.choice(ITEMS)]), random.choice([1, 2, 3, -1, -2])

    def body(execute):
        answer = execute("SELECT outcome FROM interlock.try_adjust('item', %s, 'stock', %s)", [item, -n]).fetchone()
        if answer[0] == "adjusted":
            sell(client, execute, op, [(item, n)])
            return True
        return False

    sent, answered, done = client.together(body)
    if answered is None or done:
        client.record("sell", (sent, answered), op=op)


def cart(client):
    op = client.new_name()
    wanted = {item: random.randint(1, 3) for item in random.sample(ITEMS, random.randint(1, 3))}
    items = [{"rel": "item", "key": item, "column": "stock", "amount": n} for item, n in wanted.items()]
    row = client.call(
        lambda execute: execute(
            "SELECT outcome, token FROM interlock.reserve_many(%s, 3, %s)", [json.dumps(items), client.name]
        ).fetchone()
    )[2]
    if row is None or row[0] != "reserved":
        return
    token = row[1]
    time.sleep(random.random() * random.choice([0.2, 0.2, 4]))
    if random.random() < 0.2:
        client.call(lambda execute: execute("SELECT interlock.cancel_reservation(%s)", [token]))
        return
    bought = random.sample(items, random.randint(1, len(items)))

    def body(execute):
        if not client.errs("no_reservation"):
            execute("SELECT interlock.confirm_reservation(%s, items => %s)", [token, json.dumps(bought)])
        sell(client, execute, op, [(item["key"], item["amount"]) for item in bought])

    client.record("sell", client.together(body)[:2], op=op)
