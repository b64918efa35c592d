"""What the tests share: an administrator, names, a proxy, a server. Connects as the environment says (PGHOST, PGPORT, PGUSER,
PGDATABASE)."""

import atexit
import contextlib
import itertools
import os
import pathlib
import selectors
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import psycopg

_admin = psycopg.connect("", autocommit=True)
atexit.register(_admin.close)
_admin_lock = threading.Lock()
_names = itertools.count(1)


def rows(sql, *values):
    """As a superuser."""
    with _admin_lock:
        cursor = _admin.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []


def value(sql, *values):
    found = rows(sql, *values)
    return found[0][0] if found else None


def run(*statements):
    for sql in statements:
        rows(sql)


HELD = "SELECT coalesce(sum(used), 0)::int FROM interlock.usage WHERE what = 'leases' AND database = current_database()"


def held():
    """Leases and tickets of this database: nothing may be left."""
    return value(HELD)


LISTENERS = "FROM pg_stat_activity WHERE usename = 'app' AND (query LIKE 'LISTEN%' OR query = 'SELECT 1')"


def listening():
    """Whether a connection of the package listens."""
    return value(f"SELECT count(*) {LISTENERS}") == 1


def deafen():
    run(f"SELECT pg_terminate_backend(pid, 100000) {LISTENERS}")


def fresh(name):
    """A name that no other test has."""
    return f"{name} {os.getpid()} {next(_names)}"


LATEST = int(os.environ.get("LATEST", 180))  # seconds, for as long as the whole suite may take


def wait_until(condition):
    end = time.monotonic() + LATEST
    while not condition():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.02)


class Proxy:
    """A server in between: connections can be cut, refused, or left without an answer."""

    def __init__(self):
        self._path = f"{os.environ['PGHOST']}/.s.PGSQL.{os.environ.get('PGPORT', 5432)}"
        self._server = socket.create_server(("127.0.0.1", 0))
        self._links, self._filter = set(), None
        self.mode, self.dropped = "open", False
        self.conninfo = f"host=127.0.0.1 port={self._server.getsockname()[1]} user=app sslmode=disable gssencmode=disable"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        for client, upstream in list(self._links):
            for each in (client, upstream):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def drop_next(self, text):
        """Cuts the connection instead of the next answer that has the text: the server has worked, and nobody learns it."""
        self._filter, self.dropped = text.encode(), False

    def close(self):
        self.mode = "refuse"
        self.cut()
        self._server.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if self.mode == "refuse":
                    client.close()
                    continue
                threading.Thread(target=self._link, args=(client,), daemon=True).start()

    def _link(self, client):
        upstream = socket.socket(socket.AF_UNIX)
        self._links.add((client, upstream))
        try:
            upstream.connect(self._path)
            self._copy(client, upstream)
        except OSError:
            pass
        finally:
            self._links.discard((client, upstream))
            client.close()
            upstream.close()

    def _copy(self, client, upstream):
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, upstream)
            selector.register(upstream, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(65536)
                    if not data:
                        return
                    if self._filter and key.fileobj is upstream and self._filter in data:
                        self._filter, self.dropped = None, True
                        return
                    if self.mode != "silent":
                        key.data.sendall(data)


class Server:
    """A server of our own, which a test can stop, with the programs of the PATH and the extension installed."""

    def __init__(self):
        self._home = pathlib.Path(tempfile.mkdtemp(prefix="own-"))
        if os.getuid() == 0:
            shutil.chown(self._home, "postgres")
        self._bin = pathlib.Path(subprocess.check_output(["pg_config", "--bindir"], text=True).strip())
        self._data = self._home / "data"
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self._home}'\nshared_preload_libraries = 'pg_interlock'\n"
                "interlock.lease_durable_after = '4 s'\nfsync = off\n"
            )
        self._control("start")
        self.conninfo = f"host={self._home} port=5432 user=postgres dbname=postgres"
        with psycopg.connect(self.conninfo) as connection:
            connection.execute("CREATE EXTENSION pg_interlock")

    def held(self):
        with psycopg.connect(self.conninfo) as connection:
            return connection.execute(HELD).fetchone()[0]

    def restart(self, mode):
        self._control("restart", "-m", mode)

    def stop(self):
        self._control("stop", "-m", "immediate")
        shutil.rmtree(self._home)

    def _control(self, *arguments):
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self._home / "log", *arguments)

    # Servers refuse to run as root.
    def _run(self, program, *arguments):
        command = [str(each) for each in (self._bin / program, *arguments)]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        environment = {name: each for name, each in os.environ.items() if name != "PGHOST"}
        subprocess.run(command, cwd="/", env=environment, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


run(
    "GRANT CREATE ON SCHEMA public TO app",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON TABLES TO app",
    "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app",
)
