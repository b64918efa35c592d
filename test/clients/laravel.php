<?php

// The page docs/clients/laravel.md, as an application on Laravel runs it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE). ROOT is the directory of the project.
// needs: php-illuminate-database php-pgsql php-symfony-process php-illuminate-filesystem

// That release of Laravel is older than PHP 8.2.
error_reporting(E_ALL & ~E_DEPRECATED);

require 'Illuminate/Database/autoload.php';
require 'Illuminate/Filesystem/autoload.php';
require 'Symfony/Component/Process/autoload.php';
require 'lib/page.php';

use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\QueryException;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Facade;
use Illuminate\Support\Facades\Schema;

function check(string $name, Closure $body) { Page::check($name, $body); }
function equal($found, $wanted) { Page::equal($found, $wanted); }

$container = new Container();
$capsule = new Manager($container);
define('OWNER', getenv('PGUSER'));
$connect = fn (string $name, string $database) => $capsule->addConnection(['driver' => 'pgsql', 'host' => getenv('PGHOST'),
    'port' => getenv('PGPORT'), 'database' => $database, 'username' => getenv('PGUSER'), 'password' => '', 'schema' => 'public'], $name);
$connect('default', getenv('PGDATABASE'));
$connect('owner', getenv('PGDATABASE'));
$connect('copy', getenv('PGDATABASE').'_copy');
$capsule->bootEloquent();
$container->instance('db', $capsule->getDatabaseManager());
$container->bind('db.schema', fn () => $capsule->getDatabaseManager()->connection()->getSchemaBuilder());
Facade::setFacadeApplication($container);
Page::load('laravel');
(new CreateNotes())->up();
Page::asApp(fn ($sql) => DB::statement($sql));
$connect('default', getenv('PGDATABASE'));
DB::purge();

$connection = null;
function raw(string $sql, array $values = []): array
{
    global $connection;
    $connection ??= new PDO('pgsql:host='.getenv('PGHOST').';port='.getenv('PGPORT').';dbname='.getenv('PGDATABASE'), OWNER, '',
        [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
    $statement = $connection->prepare($sql);
    $statement->execute($values);
    return $statement->fetchAll(PDO::FETCH_NUM);
}
function disconnect() { global $connection; $connection = null; DB::purge(); }
function byScript(Note $note) { raw("UPDATE notes SET body = 'of a script' WHERE id = ? AND interlock.any_version(version)", [$note->id]); }
function same(Note $note) { equal($note->version, DB::table('notes')->where('id', $note->id)->value('version')); }
function body(Note $note) { return raw('SELECT body FROM notes WHERE id = ?', [$note->id])[0][0] ?? null; }
function refused(string $state, Closure $call) { equal(Page::error(QueryException::class, $call)->getCode(), $state); }

// Eloquent as it is.
class BareNote extends Model
{
    protected $table = 'notes';
    protected $guarded = [];
}

// --- What is safe

check('the version in memory is the stored one after create, save, update, and a save of nothing', function () {
    $note = Note::create(['body' => 'old']);
    same($note);
    $note->update(['body' => 'a']);
    same($note);
    $note->body = 'b';
    $note->save();
    $note->save();
    same($note);
    $note->delete();
    equal(Note::find($note->id), null);
});
check('after several saves in one transaction; after a rollback it is ahead, and refresh cures that', function () {
    $note = Note::create(['body' => 'old']);
    DB::transaction(function () use ($note) {
        foreach (['a', 'b', 'c'] as $body) {
            $note->update(['body' => $body]);
        }
    });
    same($note);
    DB::transaction(function () use ($note) {
        try {
            DB::transaction(function () use ($note) {
                $note->update(['body' => 'undone']);
                throw new DomainException();
            });
        } catch (DomainException) {
        }
        Page::error(StaleModelException::class, fn () => $note->update(['body' => 'false conflict']));
        $note->refresh()->update(['body' => 'again']);
    });
    same($note);
    equal(body($note), 'again');
});
$calls = [
    'save' => fn ($note) => $note->fill(['body' => 'mine'])->save(),
    'saveQuietly' => fn ($note) => $note->fill(['body' => 'mine'])->saveQuietly(),
    'delete' => fn ($note) => $note->delete(),
];
foreach ($calls as $name => $call) {
    check("$name of a stale model is StaleModelException, and IL011 without the trait", function () use ($call) {
        $note = Note::create(['body' => 'old']);
        $bare = BareNote::find($note->id);
        byScript($note);
        Page::error(StaleModelException::class, fn () => $call($note));
        refused('IL011', fn () => $call($bare));
        equal(body($note), 'of a script');
        equal($note->version + 1, $note->refresh()->version);
    });
}
check('without the trait and without reject the change is lost', function () {
    raw("SELECT interlock.enable_versioning('notes')");
    $bare = BareNote::find(Note::create(['body' => 'old'])->id);
    raw("UPDATE notes SET body = 'of a script' WHERE id = ?", [$bare->id]);
    $bare->update(['body' => 'mine']);
    equal(raw('SELECT body FROM notes WHERE id = ?', [$bare->id])[0][0], 'mine');
    raw("SELECT interlock.enable_versioning('notes', blind_updates => 'reject')");
});
check('lockForUpdate reads again', function () {
    $note = Note::create(['body' => 'old']);
    byScript($note);
    DB::transaction(fn () => tap(Note::lockForUpdate()->find($note->id))->update(['body' => 'mine']));
    equal(body($note), 'mine');
});
check('the query builder: refused without a version, 0 rows with an old one, any_version', function () {
    $note = Note::create(['body' => 'old']);
    byScript($note);
    refused('IL011', fn () => Note::where('id', $note->id)->update(['body' => 'mine']));
    refused('IL011', fn () => DB::table('notes')->where('id', $note->id)->delete());
    refused('IL011', fn () => Note::upsert([['id' => $note->id, 'body' => 'mine']], ['id'], ['body']));
    equal(Note::where('id', $note->id)->where('version', $note->version)->update(['body' => 'mine']), 0);
    equal(Note::where('id', $note->id)->whereRaw('interlock.any_version(version)')->increment('hits'), 1);
    equal($note->increment('hits'), 0);
    $note->refresh();
    equal($note->increment('hits'), 1);
    equal([body($note), $note->refresh()->hits], ['of a script', 2]);
});
check('ORM-4: a key that is used again does not meet the old version', function () {
    $stale = Note::create(['body' => 'old']);
    Note::find($stale->id)->delete();
    $new = (new Note())->forceFill(['id' => $stale->id, 'body' => 'new']);
    $new->save();
    same($new);
    Page::error(StaleModelException::class, fn () => $stale->update(['body' => 'stale']));
    equal(body($stale), 'new');
});
check('a form carries its version', function () {
    $form = Note::create(['body' => 'old'])->version;
    $note = Note::latest('id')->first();
    byScript($note);
    $note->refresh();
    $note->version = $form;
    $note->syncOriginalAttribute('version');
    Page::error(StaleModelException::class, fn () => $note->update(['body' => 'mine']));
});

// --- Conflicts

check('IL001 of a function is StaleModelException, others stay', function () {
    $note = Note::create(['body' => 'old']);
    $call = fn ($version) => fn () => Interlock::transaction(fn () => DB::selectOne('SELECT interlock.versioned_update(?, ?, ?, ?) AS version',
        ['notes', $note->id, $version, json_encode(['body' => 'new'])])->version);
    equal((int) $call($note->version)(), $note->version + 1);
    $error = Page::error(StaleModelException::class, $call($note->version));
    equal($error->getPrevious()->getCode(), 'IL001');
    preg_match('/DETAIL:\s+(\{.*\})/', $error->getMessage(), $detail);
    equal(json_decode($detail[1])->version, $note->version + 1);
    refused('IL011', fn () => Interlock::transaction(fn () => DB::update("UPDATE notes SET body = 'x'"), 5));
});
check('it is repeated as a whole, and given up', function () {
    $note = Note::create(['body' => 'old']);
    $attempts = 0;
    Interlock::transaction(function () use ($note, &$attempts) {
        $mine = Note::find($note->id);
        if (++$attempts < 3) {
            byScript($note);
        }
        $mine->update(['body' => "attempt $attempts"]);
    }, 5);
    equal([$attempts, body($note)], [3, 'attempt 3']);
    Page::error(StaleModelException::class, fn () => Interlock::transaction(function () use ($note) {
        $mine = Note::find($note->id);
        byScript($note);
        $mine->update(['body' => 'x']);
    }, 2));
});
check('what reading again cures is repeated, and what is hopeless is tried once', function () {
    $tries = ['IL001' => 2, '40001' => 2, '40P01' => 2, 'IL002' => 1, 'IL003' => 1, 'IL004' => 1, 'IL005' => 1,
        'IL006' => 1, 'IL007' => 1, 'IL008' => 1, 'P0002' => 1];
    $counted = [];
    foreach (array_keys($tries) as $code) {
        $count = 0;
        $fails = function () use ($code, &$count) {
            $count++;
            DB::unprepared("DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''$code''; END'");
        };
        Page::error(Exception::class, fn () => Interlock::transaction($fails, 2));
        $counted[$code] = $count;
    }
    equal($counted, $tries);
});

// --- Eight processes

function lost(string $model): int
{
    $id = Note::create(['body' => 'hot'])->id;
    $acknowledged = Page::race(5, fn () => disconnect(), fn () => raw('UPDATE notes SET hits = hits + 1 WHERE id = ? AND interlock.any_version(version)', [$id]),
        function (Closure $meet) use ($id, $model) {
            $note = $model::find($id);
            $meet();
            try {
                $note->hits++;
                return $note->save();
            } catch (StaleModelException) {
                return false;
            }
        });
    return $acknowledged - Note::find($id)->hits;
}
check('eight workers and a script on one row: with bare Eloquent updates are lost', function () {
    raw("SELECT interlock.enable_versioning('notes')");
    $lost = lost(BareNote::class);
    raw("SELECT interlock.enable_versioning('notes', blind_updates => 'reject')");
    echo "# lost without the trait: $lost of 50\n";
    equal($lost >= 40, true);
});
check('and none with the trait', fn () => equal(lost(Note::class), 0));

// --- Leases, idempotency

check('a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one', function () {
    $free = fn () => raw("SELECT interlock.try_lock_key('one')::int")[0][0] == 1;
    equal(oneAtATime('one', $free), false);
    equal($free(), true);
    DB::select('SELECT interlock.lock_key(?)', ['one']);
    equal($free(), true);
});
check('work is done by the holder, and not beside it', function () {
    Note::create(['body' => '']);
    equal(tidyNotes(), true);
    equal(Note::where('body', '')->count(), 0);
    $lease = Lease::acquire('tidy notes', 300);
    equal(tidyNotes(), false);
    $lease->release();
    equal(raw("SELECT FROM interlock.lease_of('tidy notes')"), []);
});
check('it is renewed at half of its ttl', function () {
    $lease = Lease::acquire('short', 20);
    $ends = fn () => (float) raw("SELECT extract(epoch FROM expires_at) FROM interlock.lease_of('short')")[0][0];
    $first = $ends();
    Page::eventually(fn () => $lease->beat() && $ends() > $first);
    $lease->release();
});
check('when it is broken, the work is stopped and cannot commit', function () {
    $lease = Lease::acquire('broken', 2);
    raw("SELECT interlock.break_lease('broken', 'test')");
    Page::error(StaleModelException::class, fn () => Interlock::transaction(fn () => $lease->check()));
    Page::eventually(fn () => ! $lease->beat());
});
check('an endpoint charges once: 201, the same again, 422, 400', function () {
    $first = pay('anna', 'k-1', ['amount' => 9.9]);
    equal($first[0], 201);
    equal(pay('anna', 'k-1', ['amount' => 9.90]), $first);
    equal(pay('anna', 'k-1', ['amount' => 8])[0], 422);
    foreach ([null, ''] as $none) equal(pay('anna', $none, [])[0], 400);
    equal(Payment::count(), 1);
});
check('an error leaves the key free', function () {
    refused('23502', fn () => pay('anna', 'k-2', []));
    equal(pay('anna', 'k-2', ['amount' => 1])[0], 201);
});
check('one request while another is running is 409', function () {
    raw('BEGIN');
    raw("SELECT FROM interlock.idempotency_claim('POST /payments', 'anna:k-3', '{\"amount\": 1}')");
    equal(pay('anna', 'k-3', ['amount' => 1])[0], 409);
    raw('ROLLBACK');
    equal(pay('anna', 'k-3', ['amount' => 1])[0], 201);
});

// --- Parameters, and connections that break

check('bad input is an error, and nothing changes', function () {
    raw("CREATE TABLE every (id uuid PRIMARY KEY, small int, day date, bytes bytea, changed timestamptz NOT NULL DEFAULT now())");
    raw("SELECT interlock.enable_versioning('every', 'changed')");
    $id = raw('SELECT gen_random_uuid()')[0][0];
    raw('INSERT INTO every (id) VALUES (?)', [$id]);
    $update = fn (array $changes, $key = null, $version = null) => DB::selectOne("SELECT interlock.versioned_update('every', ?, ?, ?) AS version",
        [$key ?? $id, $version ?? DB::table('every')->value('changed'), json_encode($changes)])->version;
    $update(['day' => '1969-12-31', 'bytes' => '\x'.bin2hex("\0\xff")]);
    $time = new DateTimeImmutable(DB::table('every')->value('changed'));
    $update(['small' => 1], null, $time->format('Y-m-d H:i:s.uP'));
    $before = raw('SELECT every::text FROM every');
    refused('IL001', fn () => $update(['small' => 2], null, $time)); // Laravel leaves the microseconds out
    refused('IL001', fn () => $update(['small' => 2], null, $time->setTimezone(new DateTimeZone('+05:00'))->format('Y-m-d H:i:s.u')));
    refused('22P02', fn () => $update(['small' => 'x']));
    refused('22003', fn () => $update(['small' => 2 ** 62]));
    refused('22P02', fn () => $update(['small' => 2], 'no uuid'));
    refused('22007', fn () => $update(['small' => 2], null, NAN));
    refused('22004', fn () => DB::selectOne("SELECT interlock.versioned_update('every', ?, ?, '{}')", [$id, null]));
    equal(json_encode(NAN), false);
    Page::error(Throwable::class, fn () => set_error_handler(fn ($level, $text) => throw new ErrorException($text)) || true
        and DB::selectOne("SELECT interlock.versioned_update('every', ?, ?, ?)", [$id, 1, ['small' => 2]]));
    restore_error_handler();
    equal(raw('SELECT every::text FROM every'), $before);
    equal(raw("SELECT encode(bytes, 'hex'), day FROM every")[0], ['00ff', '1969-12-31']);
});
raw("CREATE FUNCTION charge(jsonb) RETURNS jsonb LANGUAGE sql AS $$ INSERT INTO payments (customer, amount) VALUES ('x', 77) RETURNING '{}'::jsonb $$");
raw("SELECT interlock.define_idempotency_scope('lost'), interlock.grant_idempotency_scope('lost', 'app')");
$note = Note::create(['body' => 'old']);
foreach (["versioned_update('notes', {$note->id}, {$note->version}, '{\"body\": \"x\"}')", "lock_key('k')", "idempotency_claim('lost', 'k')",
    "run_once('lost', 'r', 'charge(jsonb)', '{}')"] as $call) {
    check('a connection that breaks after '.strtok($call, '(').', before the commit, leaves nothing; the next one does it', function () use ($call) {
        $state = "SELECT (SELECT sum(version) FROM notes), (SELECT count(*) FROM interlock.idempotency WHERE scope = 'lost'), (SELECT count(*) FROM payments)";
        $before = raw($state);
        Page::error(PDOException::class, fn () => DB::transaction(function () use ($call) {
            DB::select("SELECT * FROM interlock.$call");
            raw('SELECT pg_terminate_backend(?, 60000)', [DB::selectOne('SELECT pg_backend_pid() AS pid')->pid]);
            DB::select('SELECT 1');
        }));
        DB::purge();
        equal(raw($state), $before);
        DB::transaction(fn () => DB::select("SELECT * FROM interlock.$call"));
    });
}
check('what is repeated after its commit was not answered is a conflict, or the same answer', function () use ($note) {
    Page::error(StaleModelException::class, fn () => $note->update(['body' => 'x']));
    equal(DB::selectOne("SELECT outcome FROM interlock.run_once('lost', 'r', 'charge(jsonb)', '{}')")->outcome, 'replay');
});

Page::loseAll(fn ($sql) => raw($sql)[0][0] ?? null, fn ($sql) => current((array) DB::selectOne($sql)), fn () => DB::purge());

// --- Schema tools

check('schema:dump and a load have all of it', function () {
    $guards = 'SELECT rel::text, mechanism, settings::text, findings::text FROM interlock.guards ORDER BY 1, 2, 3';
    raw('CREATE DATABASE '.getenv('PGDATABASE').'_copy');
    $process = fn (...$arguments) => Symfony\Component\Process\Process::fromShellCommandline(...$arguments);
    $state = fn ($name) => new Illuminate\Database\Schema\PostgresSchemaState(DB::connection($name), null, $process);
    $file = getcwd().'/schema';
    $state('owner')->dump(DB::connection('owner'), $file);
    $suffix = str_starts_with(file_get_contents($file), 'PGDMP') ? '.dump' : '.sql'; // as the release of Laravel names it
    rename($file, $file.$suffix);
    $state('copy')->load($file.$suffix);
    equal(array_map(fn ($row) => array_values((array) $row), DB::connection('copy')->select($guards)), raw($guards));
    equal(DB::connection('copy')->select("SELECT * FROM interlock.advise() WHERE severity = 'broken'"), []);
});
check('migrate:fresh leaves the extension, and the migration guards its tables again', function () {
    config_copy(function () {
        Schema::dropAllTables();
        (new CreateNotes())->up();
        $note = Note::create(['body' => 'old']);
        refused('IL011', fn () => DB::table('notes')->update(['body' => 'x']));
        equal(DB::select("SELECT * FROM interlock.advise() WHERE severity = 'broken'"), []);
    });
});
function config_copy(Closure $work)
{
    global $capsule;
    $capsule->getDatabaseManager()->setDefaultConnection('copy');
    $work();
    $capsule->getDatabaseManager()->setDefaultConnection('default');
    DB::purge('copy');
}
raw('DROP DATABASE '.getenv('PGDATABASE').'_copy WITH (FORCE)');

// --- Every function

Page::callAll('laravel', fn (string $sql, array $values) => array_map(fn ($row) => array_values((array) $row), laravelQuery($sql, $values)));
// What is typed with ? on the page: $1 to $n in the order of the text.
function laravelQuery(string $sql, array $values): array
{
    $order = [];
    $sql = preg_replace_callback('/\$(\d+)/', function ($match) use (&$order, $values) {
        $order[] = $values[$match[1] - 1];
        return '?';
    }, $values === [] ? $sql : str_replace('?', '??', $sql));
    return $values === [] ? DB::connection('owner')->getPdo()->query($sql)->fetchAll(PDO::FETCH_NUM) : DB::connection('owner')->select($sql, $order);
}
Page::done();
