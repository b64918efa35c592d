"""Three nodes with Patroni, and one etcd, on ports of the loopback. What is in the directory:

cluster.json               its first port, whether it is synchronous, and how far the clocks of nodes are off
etcd/                      etcd: its data, log and pid
node1/ node2/ node3/       Patroni of a node: its configuration, log and pid, and the server's data
node1/relay/ ...           the relay of a node: its log and pid

What nodes and etcd say to a node passes its relay, and so does what the node says to etcd. A stopped relay cuts the node off from
them, and not from its clients.

Only processes whose command line has this directory are signalled.
"""

import contextlib
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import yaml

from adjustable_clock import AdjustableClock, compile_clock
from disks import fill
from processes import children_of, command_of, send, state_of, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/operations/high-availability.md"
RELAY = pathlib.Path(__file__).resolve().parent / "relay.py"
CALLBACK = ROOT / "examples/patroni/end_grace"
NODES = ["node1", "node2", "node3"]


@functools.cache
def text_of(path):
    return path.read_text()


def read_sources():
    """Reads what the servers' user may not be able to read."""
    for path in (PAGE, RELAY, CALLBACK):
        text_of(path)


def configuration():
    """The one of the page."""
    return yaml.safe_load(re.search(r"^```yaml\n(.*?)^```$", text_of(PAGE), re.M | re.S)[1])


def bin_directory():
    if shutil.which("pg_config"):
        return subprocess.run(["pg_config", "--bindir"], check=True, capture_output=True, text=True).stdout.strip()
    return str(max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)))


class Cluster:
    def __init__(self, directory, synchronous=True, clocks=None):
        """clocks: seconds by which the clock of a node is off, such as {"node2": 60}."""
        self.directory = pathlib.Path(directory)
        # Patroni would use the reader's PGTARGETSESSIONATTRS for its own connections.
        for name in [name for name in os.environ if re.fullmatch("PG[A-Z]+", name)]:
            del os.environ[name]
        self.bin = bin_directory()
        file = self.directory / "cluster.json"
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps([self.choose_ports(), synchronous, clocks or {}]))
        self.first_port, self.synchronous, self.clocks = json.loads(file.read_text())
        self.password = configuration()["postgresql"]["authentication"]["superuser"]["password"]

    # --- Where they are ----------------------------------------------------------------------------------------------

    def port(self, node):
        return self.first_port + NODES.index(node)

    def address(self, node):
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port(node)}/postgres"

    def api(self, node):
        return f"127.0.0.1:{self.port(node) + len(NODES)}"

    def relayed(self, node):
        """Where the relay of a node listens for its server, for its Patroni, and for etcd."""
        return [f"127.0.0.1:{self.port(node) + block * len(NODES)}" for block in (2, 3, 4)]

    def etcd(self, peer=False):
        return f"127.0.0.1:{self.first_port + 5 * len(NODES) + peer}"

    def choose_ports(self):
        for first in range(7431, 7931, 20):
            with contextlib.ExitStack() as sockets:
                try:
                    for port in range(first, first + 5 * len(NODES) + 2):
                        sockets.enter_context(socket.create_server(("127.0.0.1", port)))
                except OSError:
                    continue
                return first
        raise RuntimeError("no free ports")

    # --- Start and stop ----------------------------------------------------------------------------------------------

    def start(self):
        self.start_etcd()
        self.start_node()
        self.wait_until_ready(len(NODES))
        self.must("CREATE EXTENSION IF NOT EXISTS pg_interlock")

    def start_etcd(self):
        directory = self.directory / "etcd"
        if self.running("etcd"):
            return
        directory.mkdir(exist_ok=True)
        client, peer = f"http://{self.etcd()}", f"http://{self.etcd(peer=True)}"
        urls = {"listen-client": client, "advertise-client": client, "listen-peer": peer, "initial-advertise-peer": peer}
        options = ["--enable-v2", "--name=etcd1", f"--data-dir={directory}/data", f"--initial-cluster=etcd1={peer}"]
        self.spawn("etcd", ["etcd", *options, *(f"--{name}-urls={url}" for name, url in urls.items())])
        wait_for("etcd", lambda: self.get(self.etcd(), "/health"))

    def start_node(self):
        """Those that do not run."""
        for node in NODES:
            if not self.patroni(node):
                self.start_patroni(node)

    def start_relay(self, node):
        targets = [f"127.0.0.1:{self.port(node)}", self.api(node), self.etcd()]
        pairs = [f"{address}={target}" for address, target in zip(self.relayed(node), targets)]
        if not self.running(f"{node}/relay"):
            program = self.directory / node / "relay.py"
            program.write_text(text_of(RELAY))
            self.spawn(f"{node}/relay", ["/usr/bin/python3", program, f"{self.directory}/{node}", *pairs])

    def start_patroni(self, node):
        directory = self.directory / node
        directory.mkdir(exist_ok=True)
        self.start_relay(node)
        server, api, etcd = self.relayed(node)
        settings = configuration()
        settings["name"] = node
        settings["restapi"] = {"listen": self.api(node), "connect_address": api}
        settings["etcd"] = {"hosts": [etcd], "use_proxies": True}  # else it asks etcd for another way to it
        settings["bootstrap"]["dcs"]["synchronous_mode"] = self.synchronous
        settings["postgresql"].update(
            {
                "listen": f"127.0.0.1:{self.port(node)}",
                "connect_address": server,
                "bin_dir": self.programs(node),
                "data_dir": f"{directory}/data",
                "pgpass": f"{directory}/pgpass",
                "pg_hba": [line.replace("10.0.0.0/24", "127.0.0.1/32") for line in settings["postgresql"]["pg_hba"]],
                # No machine loses power here, so nothing must be on its disk.
                "parameters": {"unix_socket_directories": "", "fsync": "off"},
            }
        )
        if self.synchronous:
            program = directory / "end_grace"
            program.write_text(text_of(CALLBACK))
            program.chmod(0o755)
            command = [str(program), self.api(node), f"user=postgres password={self.password}"]
            settings["postgresql"]["callbacks"]["on_role_change"] = shlex.join(command)
        else:
            del settings["postgresql"]["callbacks"]
        settings["watchdog"] = {"mode": "off"}
        (directory / "patroni.yml").write_text(yaml.safe_dump(settings))
        self.spawn(node, ["patroni", f"{directory}/patroni.yml"])

    def programs(self, node):
        """The directory of the server's programs. If the clock of the node is off, its postgres runs with another clock."""
        directory = self.directory / node / "bin"
        if node not in self.clocks:
            return self.bin
        if not directory.exists():
            directory.mkdir()
            for program in pathlib.Path(self.bin).iterdir():
                if program.name != "postgres":
                    (directory / program.name).symlink_to(program)
            clock = AdjustableClock(compile_clock(directory), directory / "clock")
            clock.step(self.clocks[node])
            variables = shlex.join(f"{name}={value}" for name, value in clock.variables.items())
            (directory / "postgres").write_text(f'#!/bin/sh\nexec env {variables} {self.bin}/postgres "$@"\n')
            (directory / "postgres").chmod(0o755)
        return str(directory)

    def spawn(self, name, command):
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        with open(directory / "log", "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        (directory / "pid").write_text(str(process.pid))

    def stop(self):
        for node in NODES:
            send(signal.SIGCONT, self.processes(node))
            self.kill_processes(node)
            send(signal.SIGKILL, self.running(f"{node}/relay"))
        send(signal.SIGKILL, self.running("etcd"))

    # --- Processes ---------------------------------------------------------------------------------------------------

    def running(self, name, file="pid"):
        """The process that a file names, as a list, if it runs and is ours."""
        try:
            pid = int((self.directory / name / file).read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return []
        return [pid] if str(self.directory) in command_of(pid) and state_of(pid) != "Z" else []

    def patroni(self, node):
        return [child for pid in self.running(node) for child in children_of(pid)]

    def server(self, node):
        return [child for pid in self.running(node, "data/postmaster.pid") for child in children_of(pid)]

    def nodes_that_run(self):
        return [node for node in NODES if self.patroni(node)]

    def processes(self, node):
        return self.patroni(node) + self.server(node)

    def kill_processes(self, node):
        # Patroni first, so that it starts nothing. What the postmaster starts meanwhile ends without it.
        send(signal.SIGKILL, self.patroni(node))
        send(signal.SIGKILL, self.server(node))

    # --- State -------------------------------------------------------------------------------------------------------

    def get(self, address, path, body=None):
        """The answer, or None. An answer of Patroni with another status than 200 is none."""
        data = json.dumps(body).encode() if body else None
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://{address}{path}", data), timeout=10) as answer:
                return json.loads(answer.read() or b"{}") if body is None else True
        except (OSError, ValueError):
            return None

    def psql(self, node, query):
        address = f"{self.address(node)}?connect_timeout=5"
        command = [f"{self.bin}/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", address, "-c", query]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def must(self, query):
        """Runs it on the primary."""
        answer = self.psql(self.primary(), query)
        if answer.returncode != 0:
            raise RuntimeError(answer.stderr)

    def primary(self, but=None):
        """The node that has Patroni's lock. It is not "but", the node that is frozen."""
        for node in NODES:
            if node != but and self.get(self.api(node), "/primary"):
                return node
        return None

    def members(self):
        """What the first node that answers knows of each: name, role, state."""
        for node in NODES:
            answer = self.get(self.api(node), "/cluster")
            if answer:
                return answer["members"]
        return []

    def is_ready(self, nodes):
        """Whether there is a primary, the others of so many nodes stream from it, and Patroni would let one of them take over."""
        roles = sorted(member["role"] for member in self.members() if member["state"] in ("running", "streaming"))
        wanted = ["leader", "replica", "replica"][:nodes]
        if self.synchronous and len(wanted) > 1:
            wanted[-1] = "sync_standby"
        primary = self.primary()
        if roles != wanted or not primary:
            return False
        streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name ~ '^node'"
        return self.psql(primary, streaming).stdout.strip() == str(len(wanted) - 1)

    def wait_until_ready(self, nodes):
        logs = f"{self.directory}/*/log and {self.directory}/*/relay/log"
        wait_for(f"a primary with its standbys: see {logs}", lambda: self.is_ready(nodes), 1)

    def list(self):
        names = {"leader": "primary", "sync_standby": "synchronous standby", "replica": "standby"}
        members = {member["name"]: member for member in self.members()}
        for node in NODES:
            member = members.get(node, {"role": "", "state": "away"})
            print(f"{node}  {self.address(node)}  {names.get(member['role'], member['role']):20}{member['state']}")

    # --- Faults ------------------------------------------------------------------------------------------------------

    def kill(self):
        send(signal.SIGKILL, self.server(wait_for("a primary", self.primary))[:1])

    def kill_node(self):
        node = wait_for("a primary", self.primary)
        self.kill_processes(node)
        wait_for("another primary", lambda: self.primary(but=node))

    def switchover(self):
        node = wait_for("a primary", self.primary)
        # Patroni refuses while the candidate is not ready.
        wait_for("the switchover", lambda: self.get(self.api(node), "/switchover", {"leader": node}), 2)
        wait_for("another primary", lambda: self.primary(but=node))

    def freeze(self):
        """The server wakes before its Patroni, which alone knows that it is no primary any more."""
        node = wait_for("a primary", self.primary)
        patroni, server = self.patroni(node), self.server(node)
        send(signal.SIGSTOP, patroni + server)
        try:
            wait_for("another primary", lambda: self.primary(but=node))
            time.sleep(2)
            send(signal.SIGCONT, server)
            time.sleep(10)
        finally:
            send(signal.SIGCONT, server + patroni)

    def cut(self):
        """The node has no connection to the other nodes and to etcd. Clients still reach it."""
        node = wait_for("a primary", self.primary)
        send(signal.SIGSTOP, self.running(f"{node}/relay"))
        try:
            wait_for("another primary", lambda: self.primary(but=node))
            time.sleep(2)
        finally:
            send(signal.SIGCONT, self.running(f"{node}/relay"))

    def stop_etcd(self):
        """Without etcd there is no primary."""
        wait_for("a primary", self.primary)
        send(signal.SIGSTOP, self.running("etcd"))
        try:
            wait_for("no primary", lambda: not self.primary())
        finally:
            send(signal.SIGCONT, self.running("etcd"))

    def full_disk(self):
        """Writes fail until there is space again. Then it is full until the server ends. What it says meanwhile is in log.full."""
        node = wait_for("a primary", self.primary)
        directory = self.directory / node
        if not directory.is_mount():
            raise RuntimeError(f"{directory} is not a file system of its own")
        grow = "CREATE TABLE grown AS SELECT 1; DROP TABLE grown"
        is_refused = lambda: re.search("ERROR: .*: No space left on device", self.psql(node, grow).stderr)  # noqa: E731
        empty = fill(directory)
        try:
            wait_for("the error of a full disk", is_refused)
        finally:
            empty()
        wait_for("space", lambda: self.psql(node, grow).returncode == 0)
        empty = fill(directory)
        try:
            # It needs the next file for WAL, cannot have it, and ends.
            wait_for("its end", lambda: self.psql(node, "SELECT pg_switch_wal()").returncode == 2)
        finally:
            empty()
            set_log_aside(directory)


def set_log_aside(directory):
    with open(directory / "log.full", "ab") as aside:
        aside.write((directory / "log").read_bytes())
    os.truncate(directory / "log", 0)
