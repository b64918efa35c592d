// The page docs/clients/jdbc.md, as an application on JDBC runs it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE). ROOT is the directory of the project.
// needs: libpostgresql-jdbc-java
// jars: postgresql

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.util.PSQLException;

class jdbc {
    static DataSource source, owner;
    static Connection raw;

    static DataSource connect(String more) {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(Page.url() + more);
        return source;
    }

    static List<String> raw(String sql, Object... values) throws SQLException { return Page.one(raw, sql, values); }
    static Map<String, Object> ask(String sql, Object... values) throws SQLException {
        return Db.transaction(source, db -> db.row(sql, values));
    }
    static int note(String body) throws SQLException {
        return (int) ask("INSERT INTO note (body) VALUES (?) RETURNING id", body).get("id");
    }
    static void byScript(int id) throws SQLException {
        raw("UPDATE note SET body = 'of a script' WHERE id = ? AND interlock.any_version(version)", id);
    }
    static String body(int id) throws SQLException { return raw("SELECT body FROM note WHERE id = ?", id).get(0); }

    public static void main(String[] arguments) throws Exception {
        owner = connect("&stringtype=unspecified");
        raw = connect("").getConnection();
        Page.load("jdbc", raw);
        source = connect("&stringtype=unspecified");
        saves();
        parameters();
        race();
        leases();
        payments();
        breaks();
        Page.loseAll(raw, SQLException.class, sql -> {
            try (Connection connection = source.getConnection()) {
                return Page.one(connection, sql).get(0);
            }
        });
        try (Connection connection = owner.getConnection()) {
            Page.callAll("jdbc", raw, connection);
        }
        Page.done();
    }

    static void saves() {
        Page.check("a save moves the version, and a stale one is StaleException with JSON in DETAIL", () -> {
            int id = note("old");
            Page.equal(Notes.save(source, id, 1, "{\"body\": \"new\"}"), 2L);
            StaleException error = Page.error(StaleException.class, () -> Notes.save(source, id, 1, "{\"body\": \"stale\"}"));
            Page.equal(error.getSQLState(), "IL001");
            String detail = ((PSQLException) error.getCause()).getServerErrorMessage().getDetail();
            Page.equal(raw("SELECT ?::jsonb->>'expected', ?::jsonb->>'version'", detail, detail), List.of("1", "2"));
            Page.equal(body(id), "new");
        });
        Page.check("an UPDATE that finds no row is one, too", () -> {
            int id = note("old");
            byScript(id);
            Page.error(StaleException.class, () -> Db.transaction(source, db -> {
                db.update("UPDATE note SET body = 'mine' WHERE id = ? AND version = ?", id, 1);
                return null;
            }));
            Page.equal(body(id), "of a script");
        });
        Page.check("and has a count of 0 in a batch", () -> {
            int first = note("old"), second = note("old");
            byScript(second);
            int[] counts = Db.transaction(source, db -> {
                try (PreparedStatement batch = db.prepare("UPDATE note SET body = 'mine' WHERE id = ? AND version = 1")) {
                    for (int id : new int[] {first, second}) {
                        batch.setInt(1, id);
                        batch.addBatch();
                    }
                    return batch.executeBatch();
                }
            });
            Page.equal(counts, new int[] {1, 0});
        });
        Page.check("a blind UPDATE is refused, by an updatable ResultSet too", () -> {
            int id = note("old");
            Page.refused("IL011", () -> ask("UPDATE note SET body = 'blind' WHERE id = ? RETURNING id", id));
            Page.refused("IL011", () -> Db.transaction(source, db -> {
                ResultSet row = db.connection().createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE)
                    .executeQuery("SELECT id, body FROM note WHERE id = " + id);
                row.next();
                row.updateString("body", "blind");
                row.updateRow();
                return null;
            }));
            Page.equal(body(id), "old");
        });
        Page.check("after a rollback to a savepoint the version is the old one", () -> {
            int id = note("old");
            Page.equal(Db.transaction(source, db -> {
                Savepoint before = db.connection().setSavepoint();
                db.update("UPDATE note SET body = 'undone' WHERE id = ? AND version = ?", id, 1);
                db.connection().rollback(before);
                db.update("UPDATE note SET body = 'mine' WHERE id = ? AND version = ?", id, 1);
                return db.row("SELECT version FROM note WHERE id = ?", id).get("version");
            }), 2L);
        });
        Page.check("what reading again cures is repeated, and what is hopeless is tried once", () -> {
            Map<String, Integer> tries = Map.ofEntries(Map.entry("IL001", 2), Map.entry("40001", 2), Map.entry("40P01", 2),
                Map.entry("IL002", 1), Map.entry("IL003", 1), Map.entry("IL004", 1), Map.entry("IL005", 1),
                Map.entry("IL006", 1), Map.entry("IL007", 1), Map.entry("IL008", 1), Map.entry("P0002", 1));
            Map<String, Integer> counted = new java.util.HashMap<>();
            for (String code : tries.keySet())
                Page.error(SQLException.class, () -> Notes.retry(2, () -> Db.transaction(source, db -> {
                    counted.merge(code, 1, Integer::sum);
                    return db.connection().createStatement().execute("DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''" + code + "''; END'");
                })));
            Page.equal(counted, tries);
        });
        Page.check("other states are StaleException, and what no retry cures is not", () -> {
            raw("CREATE TABLE orders (id uuid PRIMARY KEY, status text NOT NULL DEFAULT 'new')");
            raw("SELECT interlock.define_transitions('orders', 'status', '{\"new\": [\"paid\"]}')");
            UUID id = UUID.randomUUID();
            raw("INSERT INTO orders VALUES (?)", id);
            ask("SELECT interlock.transition('orders', ?, 'new', 'paid')", id);
            Page.equal(Page.error(StaleException.class, () -> ask("SELECT interlock.transition('orders', ?, 'new', 'paid')", id)).getSQLState(), "IL003");
            Page.equal(Page.error(PSQLException.class, () -> ask("SELECT interlock.transition('orders', ?, 'paid', 'new')", id)).getSQLState(), "IL002");
            Page.error(StaleException.class, () -> ask("SELECT interlock.versioned_update('note', ?, 1, '{}')", 0));
        });
    }

    static void parameters() throws Exception {
        raw("CREATE TABLE every (id uuid PRIMARY KEY, number numeric, small int, day date, bytes bytea, tags text[], changed timestamptz NOT NULL DEFAULT now())");
        raw("SELECT interlock.enable_versioning('every', 'changed')");
        raw("CREATE TABLE old_day (day date PRIMARY KEY, at timestamp NOT NULL DEFAULT '1960-01-01')");
        raw("SELECT interlock.enable_versioning('old_day', 'at')");
        UUID id = UUID.randomUUID();
        raw("INSERT INTO every (id) VALUES (?)", id);
        String update = "SELECT interlock.versioned_update('every', ?, ?, ?) AS version";
        Callable<OffsetDateTime> version = () -> Db.transaction(source, db -> {
            try (ResultSet row = db.prepare("SELECT changed FROM every WHERE id = ?", id).executeQuery()) {
                row.next();
                return row.getObject(1, OffsetDateTime.class);
            }
        });
        Page.check("an OffsetDateTime is a version to the microsecond, and text is; milliseconds, and a time without a zone, are not", () -> {
            ask(update, id, version.call(), "{\"number\": 1.10}");
            ask(update, id, raw("SELECT changed::text FROM every").get(0), "{\"number\": 2}");
            Page.error(StaleException.class, () -> ask(update, id, version.call().minusNanos(1000), "{}"));
            Page.error(StaleException.class, () -> ask(update, id, version.call().withOffsetSameInstant(ZoneOffset.ofHours(5)).toLocalDateTime(), "{}"));
        });
        Page.check("dates before 1970, a LocalDateTime as a version", () -> {
            raw("INSERT INTO old_day VALUES ('1969-12-31')");
            ask("SELECT interlock.versioned_update('old_day', ?, ?, '{}')", LocalDate.of(1969, 12, 31), LocalDateTime.of(1960, 1, 1, 0, 0));
            Page.error(StaleException.class, () -> ask("SELECT interlock.versioned_update('old_day', ?, ?, '{}')", LocalDate.of(1969, 12, 31),
                java.sql.Timestamp.valueOf("1960-01-01 00:00:00")));
        });
        Page.check("bad input is an error, and nothing changes", () -> {
            List<String> before = raw("SELECT every::text FROM every");
            Page.refused("22P02", () -> ask(update, id, version.call(), "{\"small\": \"x\"}"));
            Page.refused("22003", () -> ask(update, id, version.call(), "{\"small\": 99999999999999999999}"));
            Page.refused("22P02", () -> ask(update, id, version.call(), "{\"number\": NaN}"));
            Page.refused("22007", () -> ask(update, id, "no time", "{}"));
            Page.refused("22P02", () -> ask(update, "no uuid", version.call(), "{}"));
            Page.refused("22004", () -> ask(update, id, null, "{}"));
            Page.refused("22004", () -> ask(update, id, version.call(), null));
            Page.refused("42883", () -> ask("SELECT interlock.versioned_update('note', ?, ?, '{}')", 1, new BigDecimal("1")));
            Page.refused("42883", () -> ask("SELECT interlock.versioned_update('note', ?, ?, '{}')", 1, Double.NaN));
            Page.error(SQLException.class, () -> ask(update, id, version.call(), Map.of("small", 1)));
            Page.error(PSQLException.class, () -> ask("SELECT * FROM interlock.acquire_lease('k', ?)", Duration.ofSeconds(1)));
            Page.error(PSQLException.class, () -> ask(update, id, Instant.now(), "{}"));
            Page.error(SQLException.class, () -> ask(update, id, version.call(), "{\"tags\": [\"\u0000\"]}"));
            Page.equal(raw("SELECT every::text FROM every"), before);
        });
    }

    static boolean addOne(int id, String compares, Page.Body meet) throws Exception {
        try (Connection connection = source.getConnection()) {
            List<String> row = Page.one(connection, "SELECT hits, version FROM note WHERE id = ?", id);
            meet.run();
            try (PreparedStatement update = connection.prepareStatement("UPDATE note SET hits = ? WHERE id = ? AND " + compares)) {
                update.setInt(1, Integer.parseInt(row.get(0)) + 1);
                update.setInt(2, id);
                update.setLong(3, Long.parseLong(row.get(1)));
                return update.executeUpdate() == 1;
            }
        }
    }

    static int lost(String compares) throws Exception {
        int id = note("hot");
        int acknowledged = Page.race(5, () -> raw("UPDATE note SET hits = hits + 1 WHERE id = ? AND interlock.any_version(version)", id),
            meet -> addOne(id, compares, meet));
        return acknowledged - Integer.parseInt(raw("SELECT hits FROM note WHERE id = ?", id).get(0));
    }

    static void race() {
        Page.check("eight workers and a script on one row: without the version updates are lost", () -> {
            int lost = lost("? > 0 AND interlock.any_version(version)");
            System.out.println("# lost without the version: " + lost + " of 50");
            Page.equal(lost >= 40, true);
        });
        Page.check("and none with it", () -> Page.equal(lost("version = ?"), 0));
        Page.check("addHit by eight threads loses none", () -> {
            int id = note("hot");
            var pool = Executors.newFixedThreadPool(8);
            for (Future<Object> hit : pool.invokeAll(java.util.Collections.nCopies(40, () -> { Notes.addHit(source, id); return null; }))) hit.get();
            pool.shutdown();
            Page.equal(raw("SELECT hits FROM note WHERE id = ?", id), List.of("40"));
        });
    }

    static void leases() {
        Page.check("a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one", () -> {
            String free = "SELECT interlock.try_lock_key('one')::text";
            Page.equal(Keys.oneAtATime(source, "one", db -> raw(free)), List.of("false"));
            Page.equal(raw(free), List.of("true"));
            try (java.sql.Connection connection = source.getConnection()) {
                connection.createStatement().execute("SELECT interlock.lock_key('one')");
                Page.equal(raw(free), List.of("true"));
            }
        });
        Page.check("work is done by the holder, and not beside it", () -> {
            note("");
            note("");
            Page.equal(Tidy.run(source), true);
            Page.equal(raw("SELECT count(*) FROM note WHERE body = ''"), List.of("0"));
            try (Lease lease = Lease.acquire(source, "tidy notes", Duration.ofMinutes(5))) {
                Page.equal(Tidy.run(source), false);
            }
            Page.equal(raw("SELECT FROM interlock.lease_of('tidy notes')"), null);
        });
        Page.check("it is renewed at half of its ttl", () -> {
            try (Lease lease = Lease.acquire(source, "short", Duration.ofSeconds(20))) {
                String ends = "SELECT extract(epoch FROM expires_at)::text FROM interlock.lease_of('short')";
                double first = Double.parseDouble(raw(ends).get(0));
                Page.eventually(() -> Double.parseDouble(raw(ends).get(0)) > first);
            }
        });
        Page.check("when it is broken, the work is stopped and cannot commit", () -> {
            try (Lease lease = Lease.acquire(source, "broken", Duration.ofSeconds(2))) {
                raw("SELECT interlock.break_lease('broken', 'test')");
                Page.equal(Page.error(StaleException.class, () -> Db.transaction(source, db -> {
                    lease.check(db);
                    return null;
                })).getSQLState(), "IL006");
                Page.eventually(lease::lost);
            }
        });
    }

    static void payments() {
        Page.check("an endpoint charges once: 201, the same again, 422, 400", () -> {
            Payments.Answer first = Payments.pay(source, "anna", "k-1", "{\"amount\": 9.90}");
            Page.equal(first.status(), 201);
            Payments.Answer again = Payments.pay(source, "anna", "k-1", "{\"amount\": 9.9}");
            Page.equal(again.status(), 201);
            Page.equal(raw("SELECT ?::jsonb = ?::jsonb", first.body(), again.body()), List.of("true"));
            Page.equal(Payments.pay(source, "anna", "k-1", "{\"amount\": 8}").status(), 422);
            for (String none : new String[] {null, ""}) Page.equal(Payments.pay(source, "anna", none, "{}").status(), 400);
            Page.equal(raw("SELECT count(*) FROM payment"), List.of("1"));
        });
        Page.check("an error leaves the key free", () -> {
            Page.refused("23502", () -> Payments.pay(source, "anna", "k-2", "{}"));
            Page.refused("22P02", () -> Payments.pay(source, "anna", "k-2", "no JSON"));
            Page.equal(Payments.pay(source, "anna", "k-2", "{\"amount\": 1}").status(), 201);
        });
        Page.check("eight requests at once are one payment", () -> {
            var pool = Executors.newFixedThreadPool(8);
            Callable<Payments.Answer> request = () -> Payments.pay(source, "anna", "k-3", "{\"amount\": 3}");
            for (Future<Payments.Answer> answer : pool.invokeAll(java.util.Collections.nCopies(8, request)))
                Page.equal(answer.get().status() == 201 || answer.get().status() == 409, true);
            pool.shutdown();
            Page.equal(raw("SELECT count(*) FROM payment WHERE amount = 3"), List.of("1"));
        });
    }

    // In the transaction of each call the session ends before the commit.
    static void breaks() throws Exception {
        raw("CREATE FUNCTION charge(jsonb) RETURNS jsonb LANGUAGE sql AS $$INSERT INTO payment (customer, amount) VALUES ('x', 77) RETURNING '{}'::jsonb$$");
        raw("CREATE TABLE task (id int PRIMARY KEY, status text NOT NULL DEFAULT 'new')");
        raw("SELECT interlock.define_transitions('task', 'status', '{\"new\": [\"done\"]}')");
        raw("SELECT interlock.define_idempotency_scope('lost'), interlock.grant_idempotency_scope('lost', 'app')");
        raw("CREATE TABLE draft (id int PRIMARY KEY, body text)");
        raw("SELECT interlock.enable_marker('draft')");
        raw("INSERT INTO task VALUES (1)");
        raw("INSERT INTO draft VALUES (1)");
        int id = note("old");
        long version = Long.parseLong(raw("SELECT version FROM note WHERE id = ?", id).get(0)); // above those that were deleted
        for (String call : List.of("versioned_update('note', " + id + ", " + version + ", '{\"body\": \"x\"}')", "lock_row('draft', 1, 'anna')",
                "lock_key('k')", "try_transition('task', 1, 'new', 'done')", "idempotency_claim('lost', 'k')",
                "run_once('lost', 'r', 'charge(jsonb)', '{}')"))
            Page.check("a connection that breaks after " + call.replaceAll("\\(.*", "") + ", before the commit, leaves nothing; the next one does it", () -> {
                String state = "SELECT (SELECT sum(version) FROM note), (SELECT status FROM task), (SELECT lock_by FROM draft), "
                    + "(SELECT count(*) FROM interlock.idempotency WHERE scope = 'lost'), (SELECT count(*) FROM payment WHERE amount = 77)";
                List<String> before = raw(state);
                SQLException error = Page.error(SQLException.class, () -> Db.transaction(source, db -> {
                    db.row("SELECT * FROM interlock." + call);
                    raw("SELECT pg_terminate_backend(?, 60000)", db.row("SELECT pg_backend_pid() AS pid").get("pid"));
                    return db.row("SELECT 1");
                }));
                Page.equal(List.of("08006", "08003", "57P01").contains(error.getSQLState()) ? null : error.getSQLState(), null);
                Page.equal(raw(state), before);
                ask("SELECT * FROM interlock." + call);
            });
        Page.check("what is repeated after its commit was not answered is a conflict, or the same answer", () -> {
            Page.error(StaleException.class, () -> Notes.save(source, id, version, "{\"body\": \"x\"}"));
            Page.equal(ask("SELECT * FROM interlock.run_once('lost', 'r', 'charge(jsonb)', '{}')").get("outcome"), "replay");
        });
    }
}
