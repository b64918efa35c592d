"""Each call of test/clients/lib/calls.json again and again in one session, and what is left of it. Prints TAP.

    soak.py MINUTES CALLS [PART]

With a part of a name, only the calls of that name. Each function is called CALLS times, and ten times as often if it writes
nothing, as far as its share of the minutes allows. After a warm-up the memory of the session must stay as it is, and its open
files, too. In the end there is no lock, no lease, no file and no row of a catalog more than before. Connects as the
environment says.

Functions that change tables are slow, and the caches of the server itself grow with each table. Therefore the memory contexts
of another session are compared after a few calls and after a hundred more.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import psycopg

CALLS = json.loads((pathlib.Path(__file__).resolve().parents[1] / "clients/lib/calls.json").read_text())
# kB of memory that a session may take after its warm-up. Caches of the server that are not full yet count after few calls.
GROWTH, GROWTH_OF_FEW, FEW = 1024, 4096, 20_000
# Calls before the memory contexts are read, and between the two times; how many contexts of one name and bytes in them may come
# with a call. Each dropped table leaves some 1.5 kB in the caches of the server, and some calls create several tables.
FIRST, MORE = 20, 100
CONTEXTS_OF_CALL, BYTES_OF_CALL, CACHED_BYTES_OF_CALL = 0.5, 100, 20_000
DDL = re.compile(r"\b(CREATE|DROP|ALTER)\b|interlock\.(enable|disable|define|require|configure|own|disown|guard|unguard|(grant|revoke)_access)")
sql = psycopg.connect("", autocommit=True).execute
tests = failed = 0


def check(passed, name, lines=()):
    global tests, failed
    tests += 1
    failed += not passed
    print(f"{'ok' if passed else 'not ok'} {tests} - {name}", flush=True)
    for line in lines if not passed else ():
        print(f"|{line}", flush=True)


# --- A call as a script of pgbench -------------------------------------------------------------------------------------


def literal(argument):
    """As a driver sends it that sends texts. An argument that is read first is a subquery."""
    if isinstance(argument, dict) and "$query" in argument:
        return f"({argument['$query']})"
    if isinstance(argument, dict) and len(argument) == 1 and next(iter(argument)).startswith("$"):
        [(kind, value)] = argument.items()
        if kind == "$duration":
            value = f"{value[2:-1]} s"
        argument = {"$bytes": lambda: f"\\x{value}", "$json": lambda: json.dumps(value)}.get(kind, lambda: value)()
    if argument is None:
        return "NULL"
    if isinstance(argument, list):
        argument = "{" + ",".join(json.dumps(element) for element in argument) + "}"
    text = argument if isinstance(argument, str) else json.dumps(argument)
    return "'" + text.replace("'", "''") + "'"


def statements(call):
    text = re.sub(r"\$(\d+)", lambda n: literal(call["arguments"][int(n[1]) - 1]), call["sql"])
    lines = [*call.get("setup", []), text]
    return ["BEGIN", *lines, "ROLLBACK"] if call.get("transaction") else lines


# --- A session ---------------------------------------------------------------------------------------------------------


class Session:
    """Calls for so many seconds."""

    def __init__(self, path, seconds):
        self.begin, self.seconds, self.samples = time.monotonic(), seconds, []
        command = ["pgbench", "-n", "-c", "1", "-M", "prepared", "-f", path, "-T", str(max(1, round(seconds)))]
        environment = {**os.environ, "PGAPPNAME": "soak"}
        # Into a file: pgbench prints each warning of the server, and would wait for a reader of a pipe.
        with tempfile.TemporaryFile("w+") as output:
            with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment) as process:
                while process.poll() is None:
                    self.sample()
                    vacuum()
                    time.sleep(0.05)
            output.seek(0)
            self.output = output.read()
        done = re.search(r"actually processed: (\d+)", self.output)
        self.calls = int(done[1]) if process.returncode == 0 and done else 0

    def sample(self):
        found = sql(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'soak' AND backend_type = 'client backend'"
        ).fetchone()
        if found is None:
            return
        try:
            status = pathlib.Path(f"/proc/{found[0]}/status").read_text()
            files = len(list(pathlib.Path(f"/proc/{found[0]}/fd").iterdir()))
            self.samples.append((time.monotonic() - self.begin, int(re.search(r"RssAnon:\s+(\d+)", status)[1]), files))
        except (OSError, TypeError):
            pass  # it has just ended

    def growth(self):
        """kB of memory and number of files, from the warm-up to the end. Between calls the memory is smaller than within one."""
        warm = [sample for sample in self.samples if sample[0] < 0.3 * self.seconds] or self.samples[:1]
        late = [sample for sample in self.samples if sample[0] > 0.8 * self.seconds] or self.samples[-1:]
        if not warm:
            return 0, 0
        return [min(sample[i] for sample in late) - max(sample[i] for sample in warm) for i in (1, 2)]


def vacuum():
    """What one session deletes again and again would slow it down."""
    tables = "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind = 'r' AND relname LIKE 'call\\_%'"
    with contextlib.suppress(psycopg.Error):  # one of them has just been dropped
        sql(f"VACUUM (SKIP_LOCKED) {sql(tables).fetchone()[0]}, interlock.idempotency")


def wal():
    return sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()[0]


def catalogs():
    """Their size."""
    return sql(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"
    ).fetchone()[0]


def prepare():
    for statement in CALLS["setup"]:
        sql(statement)


def soak(call, seconds, wanted, directory):
    """The number of calls, and whether all stayed as it was."""
    prepare()
    lines = statements(call)
    path = directory / "call.sql"
    path.write_text("".join(" ".join(line.split()) + ";\n" for line in lines))
    before = wal()
    trial = Session(path, 1)
    if not trial.calls:
        check(False, call["name"], trial.output.splitlines()[-5:])
        return 0
    # What others write meanwhile is not of these calls.
    if not call.get("setup") and wal() - before < trial.calls:
        wanted *= 10
    size = catalogs()
    session = Session(path, min(seconds, wanted / trial.calls))
    kilobytes, files = session.growth()
    limit = GROWTH_OF_FEW if session.calls < FEW else max(GROWTH, GROWTH * session.calls // 100_000)
    # After few calls the session has not warmed up. kept_memory() makes as many as it takes.
    wrong = [f"{kilobytes} kB more"] if session.calls >= MORE and kilobytes > limit else []
    wrong += [f"{files} open files more"] if files > 64 else []
    if not DDL.search(" ".join(lines)) and catalogs() - size > 1 << 20:
        wrong.append(f"catalogs are {(catalogs() - size) >> 10} kB larger")
    wrong += kept_memory(call)
    wrong += [] if session.calls else session.output.splitlines()[-5:]
    check(not wrong, f"{call['name']}: {session.calls:,} calls", wrong)
    return session.calls


# --- Memory contexts ---------------------------------------------------------------------------------------------------


def contexts(session):
    found = session.execute("SELECT name, count(*), sum(used_bytes)::bigint FROM pg_backend_memory_contexts GROUP BY 1").fetchall()
    return {name: (count, used) for name, count, used in found}


def kept_memory(call):
    """What each call leaves in the memory of its session."""
    with psycopg.connect("", autocommit=True, prepare_threshold=0) as session:
        prepare()
        before = {}
        for rounds in (FIRST, MORE):
            before = contexts(session)
            for _ in range(rounds):
                for line in statements(call):
                    session.execute(line)
        wrong = []
        for name, (count, used) in contexts(session).items():
            count, used = count - before.get(name, (0, 0))[0], used - before.get(name, (0, 0))[1]
            limit = CACHED_BYTES_OF_CALL if name == "CacheMemoryContext" else BYTES_OF_CALL
            if count > CONTEXTS_OF_CALL * MORE or used > limit * MORE:
                wrong.append(f"{MORE} calls leave {count} memory contexts and {used} bytes: {name}")
        return wrong


# --- What is left ------------------------------------------------------------------------------------------------------


def left():
    """Everything that could be left behind, by name."""
    names = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND relname !~ 'statistic'"
    )
    rows = {f"rows of {name}": sql(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in sql(names).fetchall()}
    locks = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    # The files of the database, but those of tables that grew and have more segments.
    files = """SELECT count(*) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = current_database())) f
                WHERE f ~ '^[0-9]+$' AND pg_filenode_relation(0, f::oid) IS NULL"""
    sql("CHECKPOINT")
    return {
        **rows,
        "locks": sql(locks).fetchone()[0],
        "files of no relation": sql(files).fetchone()[0],
        "leases": sql("SELECT count(*) FROM interlock.leases").fetchone()[0],
        "reservations": sql("SELECT count(*) FROM interlock.reservations").fetchone()[0],
        # Other kinds of room keep what may be used again.
        "names of key locks": sql("SELECT coalesce(sum(used), 0) FROM interlock.usage WHERE what = 'key names'").fetchone()[0],
    }


def tidy():
    """Removes what calls leave on purpose."""
    prepare()
    sql("SELECT interlock.break_lease(key, 'soak') FROM interlock.leases")
    sql("SELECT interlock.cancel_reservation(token) FROM interlock.reservations")
    sql("DROP TABLE IF EXISTS call_counter CASCADE")


def main():
    minutes, wanted = float(sys.argv[1]), int(sys.argv[2])
    calls = [call for call in CALLS["calls"] if (sys.argv[3:] or [""])[0] in call["name"]]
    prepare()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for call in calls:  # all kinds of rows are there
            path = directory / "once.sql"
            path.write_text("".join(" ".join(line.split()) + ";\n" for line in statements(call)))
            subprocess.run(["pgbench", "-n", "-t", "2", "-f", path], check=False, capture_output=True)
        tidy()
        before = left()
        begin, total, fewest = time.monotonic(), 0, None
        for number, call in enumerate(calls):
            remaining = minutes * 60 - (time.monotonic() - begin)
            done = soak(call, max(1, remaining / (len(calls) - number) - 1.5), wanted, directory)
            total += done
            fewest = min(fewest or (done, call["name"]), (done, call["name"]))
    tidy()
    after = left()
    more = [f"{what}: {before.get(what, 0)} before, {count} after" for what, count in after.items() if count > before.get(what, 0)]
    check(not more, "nothing is left behind", more)
    print(f"# note: {total:,} calls in {len(calls)} ways; the fewest: {fewest[0]:,} of {fewest[1]}", flush=True)
    print(f"1..{tests}")
    sys.exit(failed > 0)


main()
