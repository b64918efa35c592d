<?php

// The code of a page of docs/clients, lines of TAP for what it does, calls of every function, and eight workers on one
// row. For PHP.

final class Page
{
    const WORKERS = 8;
    private static int $tests = 0;
    private static bool $failed = false;

    public static function load(string $page): void
    {
        $text = file_get_contents(getenv('ROOT')."/docs/clients/$page.md");
        preg_match_all('/^```php\n(.*?)^```$/ms', $text, $blocks);
        file_put_contents("$page.page.php", "<?php\n".implode("\n", $blocks[1]));
        require getcwd()."/$page.page.php";
    }

    // After the migrations of the page: all that connects from now on is the role app, which has on the tables of the page what the
    // page grants. On tables of tests it may do what plain SQL does. execute runs SQL as their owner.
    public static function asApp(Closure $execute): void
    {
        $execute('ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app');
        $execute('ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app');
        putenv('PGUSER=app');
    }

    public static function check(string $name, Closure $body): void
    {
        self::$tests++;
        try {
            $body();
            echo 'ok ', self::$tests, " - $name\n";
        } catch (Throwable $error) {
            self::$failed = true;
            echo 'not ok ', self::$tests, " - $name\n", preg_replace('/^/m', '# ', (string) $error), "\n";
        }
    }

    public static function done(): void
    {
        echo '1..', self::$tests, "\n";
        exit(self::$failed ? 1 : 0);
    }

    public static function equal($found, $wanted): void
    {
        if ($found !== $wanted) {
            throw new LogicException('found '.var_export($found, true).', wanted '.var_export($wanted, true));
        }
    }

    // The error that the body raises, which is of that class.
    public static function error(string $type, Closure $body): Throwable
    {
        try {
            $body();
        } catch (Throwable $error) {
            if ($error instanceof $type) {
                return $error;
            }
            throw $error;
        }
        throw new LogicException("no $type");
    }

    // Until it is true; for as long as the whole suite may take.
    public static function eventually(Closure $condition): void
    {
        for ($end = hrtime(true) + 180e9; ! $condition(); usleep(20000)) {
            if (hrtime(true) > $end) {
                throw new LogicException('it does not come true');
            }
        }
    }

    // Eight processes and a raw writer add one to the same number. An attempt reads, calls what it is given, writes, and
    // returns whether the write was acknowledged. In each round all of them have read before the raw writer writes,
    // and write after it. Processes share no connection: disconnect closes that of the caller. Returns how many acknowledged
    // additions there were.
    public static function race(int $rounds, Closure $disconnect, Closure $raw, Closure $attempt): int
    {
        $disconnect();
        $pipes = [];
        for ($n = 0; $n < self::WORKERS; $n++) {
            [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            $pipes[] = $ours;
            if (pcntl_fork() === 0) {
                array_map('fclose', $pipes);
                self::work($rounds, $attempt, function () use ($theirs) {
                    fwrite($theirs, '.');
                    if (fread($theirs, 1) === '') {
                        throw new LogicException('the raw writer has ended');
                    }
                });
                fwrite($theirs, '!');
                posix_kill(posix_getpid(), SIGKILL); // no destructors, which are the parent's
            }
            fclose($theirs);
        }
        $all = function (string $wanted) use ($pipes) {
            foreach ($pipes as $pipe) {
                if (fread($pipe, 1) !== $wanted) {
                    throw new LogicException('a worker has ended');
                }
            }
        };
        $go = fn () => array_map(fn ($pipe) => fwrite($pipe, '.'), $pipes);
        for ($round = 0; $round < $rounds; $round++) {
            $all('.'); // all of them begin with the same row
            $go();
            $all('.');
            $raw();
            $go();
            $raw();
        }
        $all('!');
        while (pcntl_wait($status) > 0);
        return $rounds * (self::WORKERS + 2);
    }

    private static function work(int $rounds, Closure $attempt, Closure $wait): void
    {
        try {
            for ($round = 0; $round < $rounds; $round++) {
                $wait();
                for ($meet = $wait; ! $attempt($meet); $meet = fn () => null);
            }
        } catch (Throwable $error) {
            fwrite(STDERR, "$error\n");
            posix_kill(posix_getpid(), SIGKILL);
        }
    }

    // Every call of calls.json (lib/calls.mjs says what is in it). query takes SQL and values, and returns rows as arrays.
    public static function callAll(string $driver, Closure $query): void
    {
        $calls = json_decode(file_get_contents(__DIR__.'/calls.json'));
        foreach ($calls->setup as $sql) {
            $query($sql, []);
        }
        foreach ($calls->calls as $call) {
            $instead = $call->drivers->$driver ?? null;
            if ($instead) {
                self::check("$call->name, as on the page", fn () => self::callOne((object) array_merge((array) $call, (array) $instead), $query));
            }
            self::check($instead ? "$call->name needs that" : $call->name, fn () => $instead
                ? self::error(Throwable::class, fn () => self::callOne($call, $query)) : self::callOne($call, $query));
        }
    }

    // Every call of lost.json (lib/client.mjs says what is in it). owner and query take SQL and return the first value; reconnect
    // makes query work again after its connection was lost.
    public static function loseAll(Closure $owner, Closure $query, Closure $reconnect): void
    {
        $lost = json_decode(file_get_contents(__DIR__.'/lost.json'));
        array_map($owner, $lost->setup);
        foreach ($lost->calls as $call) {
            self::check("$call->name that is lost in the middle changes nothing and can be repeated, also after an unknown outcome", function () use ($lost, $call, $owner, $query, $reconnect) {
                $before = $owner($lost->state);
                self::error(PDOException::class, fn () => $query("WITH done AS MATERIALIZED ($call->sql) SELECT (SELECT count(done) FROM done), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)::text"));
                $reconnect();
                self::equal($owner($lost->state), $before);
                self::equal($query($call->sql), $call->first);
                if ($call->again === null) {
                    self::error(PDOException::class, fn () => $query($call->sql));
                } else {
                    self::equal($query($call->sql), $call->again);
                }
            });
        }
        array_map($owner, $lost->teardown);
    }

    private static function callOne(object $call, Closure $query): void
    {
        if ($call->transaction ?? false) {
            $query('BEGIN', []);
        }
        try {
            foreach ($call->setup ?? [] as $sql) {
                $query($sql, []);
            }
            $values = array_map(fn ($argument) => self::value($argument, $query), $call->arguments);
            $row = $query($call->sql, $values)[0] ?? null;
            if (isset($call->answer)) {
                self::equal($row === null ? null : array_map(fn ($found) => $found === null || is_bool($found) ? $found : (string) $found, $row), $call->answer);
            }
        } finally {
            if ($call->transaction ?? false) {
                $query('ROLLBACK', []);
            }
        }
    }

    private static function value($argument, Closure $query)
    {
        if (is_array($argument)) {
            return '{'.implode(',', $argument).'}';
        }
        if (! is_object($argument)) {
            return $argument;
        }
        $value = current((array) $argument);
        return match (key((array) $argument)) {
            '$bigint' => (int) $value,
            '$timestamp' => (new DateTimeImmutable($value))->format('Y-m-d H:i:s.uP'),
            '$bytes' => '\x'.$value,
            '$uuid', '$date', '$duration' => $value,
            '$json' => json_encode($value),
            '$query' => $query($value, [])[0][0],
            default => json_encode($argument),
        };
    }
}
