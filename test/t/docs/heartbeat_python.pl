# examples/lease_heartbeat.py, as an application runs it: renewed, lost, with a server that cannot be reached.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

plan skip_all => 'needs psycopg 3' unless run_log([ 'python3', '-c', 'import psycopg' ]);

my $node = start_server();
my $examples = "$FindBin::RealBin/../../../examples";
local @ENV{qw(PGHOST PGPORT PGDATABASE PYTHONPATH PYTHONDONTWRITEBYTECODE)} = ($node->host, $node->port, 'postgres', $examples, 1);

# runs(NAME, PRINTED, PYTHON): what it must print.
sub runs
{
    my ($name, $printed, $python) = @_;
    my ($out, $error) = run_command([ 'python3', '-c', "import psycopg, time\nfrom lease_heartbeat import lease\nconnect = lambda: psycopg.connect('')\nsql = psycopg.connect('', autocommit=True).execute\n$python" ]);
    is($out, $printed, $name) or diag($error);
    return;
}

runs('work runs under the lease, with its token', "True\nNone\nNone", <<'PYTHON');
with lease(connect, "report", 1000) as held:
    print(sql("SELECT token FROM interlock.lease_of('report')").fetchone()[0] == held.token)
    with lease(connect, "report", 1000) as second:
        print(second)
print(sql("SELECT FROM interlock.lease_of('report')").fetchone())
PYTHON
runs('it is renewed at half of its ttl', 'renewed', <<'PYTHON');
end = lambda: sql("SELECT expires_at FROM interlock.lease_of('report')").fetchone()[0]
with lease(connect, "report", 20) as held:
    first = end()
    while end() <= first:
        time.sleep(0.1)
    print("renewed")
PYTHON
runs('a lease that is lost ends the work', 'lost', <<'PYTHON');
with lease(connect, "report", 2) as held:
    sql("SELECT interlock.break_lease('report', 'test')")
    held.lost.wait()
    print("lost")
PYTHON
runs('a server that cannot be reached ends it before the lease ends', 'lost', <<'PYTHON');
class Away(psycopg.Cursor):
    def execute(self, query, *more):
        if "renew_lease" in query:
            raise psycopg.OperationalError("gone")
        return super().execute(query, *more)
with lease(lambda: psycopg.connect('', cursor_factory=Away), "report", 4) as held:
    held.lost.wait()
    print("lost")
PYTHON
runs('LEA-4: an acquire whose answer was lost is repeated', 'True', <<'PYTHON');
calls = []
class Lossy(psycopg.Cursor):
    def execute(self, query, *more):
        answer = super().execute(query, *more)
        if "acquire_lease" in query and not calls:
            calls.append(query)
            raise psycopg.OperationalError("gone")
        return answer
with lease(lambda: psycopg.connect('', cursor_factory=Lossy), "answer", 1000) as held:
    print(held is not None)
PYTHON
my $turn = <<'PYTHON';
import threading
def tickets():
    return sql("SELECT coalesce(sum(used), 0) FROM interlock.usage WHERE what = 'leases' AND role IS NULL").fetchone()[0]
def until(condition):
    while not condition():
        time.sleep(0.02)
PYTHON
runs('LEA-53: it waits, and works when its turn has come', 'worked', $turn . <<'PYTHON');
sql("SELECT interlock.acquire_lease('turn', '10 min', holder => 'first')")
def work():
    with lease(connect, "turn", 600, wait=600) as held:
        print("worked" if held else "not")
second = threading.Thread(target=work)
second.start()
until(lambda: tickets() == 2)
sql("SELECT interlock.release_lease('turn', holder => 'first')")
second.join()
PYTHON
runs('LEA-53: when the time is over it has no ticket', "None
1
0", $turn . <<'PYTHON');
with lease(connect, "turn", 600) as first:
    with lease(connect, "turn", 600, wait=0.2) as second:
        print(second)
    print(tickets())
print(tickets())
PYTHON
runs('LEA-53: it stops waiting when it is told to, and leaves no ticket', "None
1", $turn . <<'PYTHON');
stop = threading.Event()
def work():
    with lease(connect, "turn", 600, wait=600, stop=stop) as held:
        print(held)
with lease(connect, "turn", 600) as first:
    second = threading.Thread(target=work)
    second.start()
    until(lambda: tickets() == 2)
    stop.set()
    second.join()
    print(tickets())
PYTHON

$node->stop;
done_testing();
