"""Orders that many clients pay or cancel at the same time."""

import random

KINDS = ["transition"]
SETUP = """
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL);
INSERT INTO orders SELECT i, 'pending' FROM generate_series(1, 20000) i;
SELECT interlock.define_transitions('orders', 'status', '{"pending": ["paid", "cancelled"]}', initial => '{pending}');
"""


def work(client):
    op, key, state = client.new_name(), client.round(), random.choice(["paid", "cancelled"])

    def body(execute):
        answer = execute("SELECT outcome FROM interlock.try_transition('orders', %s, 'pending', %s)", [key, state]).fetchone()
        if answer[0] == "transitioned":
            client.effect(execute, op, "transition")
        return answer[0]

    sent, answered, outcome = client.together(body)
    if answered is None or outcome == "transitioned":
        client.record("transition", (sent, answered), op=op, key=key, state="pending")
