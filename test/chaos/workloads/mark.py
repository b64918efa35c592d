"""Rows that are marked while they are edited."""

import json
import random
import time

KINDS = ["mark", "edit"]
SETUP = """
CREATE TABLE page (id int PRIMARY KEY, body text);
INSERT INTO page SELECT i, '' FROM generate_series(1, 4) i;
SELECT interlock.enable_versioning('page'), interlock.enable_marker('page', ttl => '2 s', notify => 'on');
CREATE FUNCTION edited() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO effect VALUES (NEW.body, 'edit'); RETURN NULL; END $$;
CREATE TRIGGER edited AFTER UPDATE OF body ON page FOR EACH ROW EXECUTE FUNCTION edited();
"""


def work(client, ttl):
    key, mark = random.randint(1, 2), client.new_name()
    sent, answered, locked = client.call(
        lambda execute: execute("SELECT locked FROM interlock.lock_row('page', %s, %s, %s)", [key, mark, ttl]).fetchone()[0]
    )
    if not locked:
        return
    client.record("mark", (sent, answered), key=key, token=mark, ttl=ttl)
    for _ in range(random.randint(0, 2)):
        op = client.new_name()
        save = "SELECT interlock.save_row('page', %s, %s, %s, keep => true)"
        times = client.call(lambda execute, op=op: execute(save, [key, mark, json.dumps({"body": op})]))
        client.record("edit", times[:2], op=op, key=key)
    client.record("unmark", (time.monotonic(), None), key=key, token=mark)
    client.call(lambda execute: execute("SELECT interlock.unlock_row('page', %s, %s)", [key, mark]))
