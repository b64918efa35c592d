"""Saves that compare the version, of rows with a history."""

import json
import random

KINDS = ["save"]
SETUP = """
CREATE TABLE doc (id int PRIMARY KEY, body text);
INSERT INTO doc SELECT i, '' FROM generate_series(1, 3) i;
SELECT interlock.enable_versioning('doc'), interlock.enable_history('doc');
"""


def stored(execute):
    return {
        "versions": execute("SELECT id, version FROM doc").fetchall(),
        "history": execute(
            "SELECT doc.id, h.version, h.row_data->>'body' FROM doc, interlock.row_history('doc', doc.id) h WHERE operation = 'update'"
        ).fetchall(),
    }


def work(client):
    op, key = client.new_name(), random.randint(1, 3)

    def body(execute):
        version = execute("SELECT version FROM doc WHERE id = %s", [key]).fetchone()[0]
        if client.errs("no_history"):
            execute("SELECT interlock.suppress_history('doc', 'a mistake')")
        outcome, version = execute(
            "SELECT outcome, version::bigint FROM interlock.try_versioned_update('doc', %s, %s::bigint, %s)",
            [key, version, json.dumps({"body": op})],
        ).fetchone()
        if outcome == "updated":
            client.effect(execute, op, "save")
            return version
        return None

    sent, answered, version = client.together(body)
    if answered is None or version is not None:
        client.record("save", (sent, answered), op=op, key=key, version=version)
