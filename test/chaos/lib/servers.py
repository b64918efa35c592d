"""A primary and its synchronous standby, and a port that leads to the primary of the moment.

What is in the directory, for each of the servers "one" and "two":

one/data/ one/wal/   file systems of their own, which a fault can fill
one/log              what the server says; one/log.full is what it said while a file system was full
archive/             the WAL, while a backup is made
"""

import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading

import psycopg

from processes import children_of, command_of, send, state_of, wait_for

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_preload_libraries = 'pg_interlock'
synchronous_standby_names = 'node'
max_connections = 80
fsync = off
min_wal_size = 2MB
max_wal_size = 64MB
wal_keep_size = 32MB
checkpoint_timeout = 30s
archive_mode = on
archive_command = 'test ! -d {archive} || cp %p {archive}/%f'
log_line_prefix = '%m [%p] '
log_min_error_statement = panic
max_locks_per_transaction = 10
interlock.max_leases = 64
interlock.key_names = 64
interlock.max_escrow_counters = 16
interlock.lease_durable_after = '5 s'
interlock.sweeper_rescan = '10 s'
"""
CRASH = re.compile(r"PANIC|TRAP:|was terminated by signal (4|6|7|8|11)|runtime error:")


class Server:
    def __init__(self, name, directory, port, programs, environment):
        self.name, self.directory, self.port, self.programs = name, directory / name, port, pathlib.Path(programs)
        self.environment = environment
        self.data = self.directory / "data/server"
        self.log = self.directory / "log"

    @property
    def address(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?connect_timeout=5"

    def program(self, name, *arguments, **options):
        return subprocess.run([self.programs / name, *arguments], check=True, capture_output=True, text=True, **options)

    def create(self, settings):
        self.program(
            "initdb", "-D", self.data, f"--waldir={self.directory}/wal/segments", "--wal-segsize=1", "-U", "postgres", "-A", "trust",
            "-E", "UTF8", "--no-locale", "--no-sync",
        )  # fmt: skip
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(settings)

    def start(self, *options, wait=True):
        """Options are settings. wait: until it answers."""
        values = " ".join(f"-c '{option}'" for option in (f"port={self.port}", "cluster_name=node", *options))
        with contextlib.suppress(OSError):
            (self.data / "postmaster.pid").unlink()  # the process is not ours any more, and its number may be
        command = ["start", "-D", self.data, "-l", self.log, "-o", values, "-t", "300", "-w" if wait else "-W"]
        # Its output is the log: a pipe would stay open in the server.
        subprocess.run(
            [self.programs / "pg_ctl", *command], check=wait, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )  # fmt: skip

    def stop(self, mode="fast"):
        subprocess.run(
            [self.programs / "pg_ctl", "stop", "-D", self.data, "-m", mode, "-t", "120", "-w"],
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.kill()

    def postmaster(self):
        """Its number, or None."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if str(self.data) in command_of(pid) and state_of(pid) not in ("", "Z") else None

    def processes(self):
        pid = self.postmaster()
        return children_of(pid) if pid else []

    def backends(self):
        """The processes of its clients."""
        return [
            pid
            for pid in self.processes()[1:]
            if re.search(r"^postgres: node: (?!walsender)\w+ \w+ [0-9.]+\(\d+\)", command_of(pid))
        ]

    def kill(self, wait=True):
        """kill -9 of the postmaster, and of what is left of its children. It is stopped first: a child that it makes after they
        are counted would keep its memory from the next start."""
        send(signal.SIGSTOP, [pid for pid in [self.postmaster()] if pid])
        pids = self.processes()
        send(signal.SIGKILL, pids)
        if wait:
            wait_for("the end of a server", lambda: all(state_of(pid) in ("", "Z") for pid in pids), 0.05)

    def set_log_aside(self):
        """What is said while a file system is full is no crash."""
        with open(self.directory / "log.full", "a", encoding="utf-8") as aside:
            aside.write(self.log.read_text(errors="replace"))
        os.truncate(self.log, 0)

    def crashes(self):
        return [line for line in self.log.read_text(errors="replace").splitlines() if CRASH.search(line)]


class Servers:
    def __init__(self, directory, programs, environment, mistake=None):
        self.directory = directory
        self.archive = directory / "archive"
        ports = free_ports(4)
        self.one, self.two = (Server(name, directory, port, programs, environment) for name, port in zip(("one", "two"), ports))
        self.restored = Server("restored", directory, ports[2], programs, environment)
        self.port = ports[3]
        self.primary, self.standby = self.one, self.two
        self.mistake = mistake

    def create(self, setup):
        settings = SETTINGS.format(archive=self.archive)
        if self.mistake == "no_grace":
            settings += "interlock.lease_recovery = immediate\ninterlock.lease_durable_after = '30 s'\n"
        self.primary.create(settings)
        self.primary.start()
        # There is no standby yet.
        self.must("SET synchronous_commit = local; CREATE EXTENSION pg_interlock;" + setup)
        self.make_standby()
        threading.Thread(target=lambda: asyncio.run(self.forward()), daemon=True).start()

    def addresses(self):
        return [self.one.address, self.two.address]

    def must(self, query, server=None):
        """The rows of the last statement. It is repeated while the server is away."""
        return wait_for(f"an answer to {query[:60]}", lambda: self.ask(query, server or self.primary))[0]

    def ask(self, query, server):
        """The rows, in a list, or None."""
        try:
            with psycopg.connect(server.address, autocommit=True) as connection:
                answer = connection.execute(query)
                while answer.nextset():
                    pass
                return [answer.fetchall() if answer.description else []]
        except psycopg.OperationalError:
            return None

    def make_standby(self):
        """A base backup of the primary takes the place of the other server."""
        wait_for("a base backup", lambda: self.backup(self.standby, "--waldir", f"{self.standby.directory}/wal/segments", "-R"))
        self.standby.start()
        self.wait_for_standby()

    def backup(self, server, *options):
        shutil.rmtree(server.data, ignore_errors=True)
        shutil.rmtree(server.directory / "wal/segments", ignore_errors=True)
        try:
            server.program("pg_basebackup", "-D", server.data, "-d", self.primary.address, "-X", "stream", "-c", "fast", *options)
            return True
        except subprocess.CalledProcessError:
            return False

    def wait_for_standby(self):
        streaming = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"
        wait_for("the standby", lambda: self.ask(streaming, self.primary) not in (None, [[]]))

    def promote(self):
        """The standby takes over. What the primary does meanwhile is up to the caller."""
        self.primary, self.standby = self.standby, self.primary
        self.primary.program("pg_ctl", "promote", "-D", self.primary.data, "-w")

    def ensure(self):
        """Starts what does not run, and waits until both answer."""
        for server in (self.primary, self.standby):
            if not server.postmaster():
                server.start(wait=False)
        wait_for(
            "the primary",
            lambda: self.ask("SELECT 1", self.primary) or (not self.primary.postmaster() and self.primary.start(wait=False)),
        )
        wait_for(
            "the standby",
            lambda: self.ask("SELECT 1", self.standby) or (not self.standby.postmaster() and self.standby.start(wait=False)),
        )
        self.wait_for_standby()

    def stop(self):
        for server in (self.one, self.two, self.restored):
            send(signal.SIGCONT, server.processes())
            server.kill()

    # --- The port that leads to the primary --------------------------------------------------------------------------

    async def forward(self):
        async def pump(reader, writer):
            with contextlib.suppress(OSError):
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
            writer.close()

        async def client(reader, writer):
            try:
                there, back = await asyncio.open_connection("127.0.0.1", self.primary.port)
            except OSError:
                writer.close()
                return
            await asyncio.gather(pump(reader, back), pump(there, writer))

        async with await asyncio.start_server(client, "127.0.0.1", self.port) as server:
            await server.serve_forever()


def free_ports(count):
    with contextlib.ExitStack() as sockets:
        found = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]
