// The page docs/clients/hibernate.md, as an application on JPA runs it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE). ROOT is the directory of the project.
// needs: libpostgresql-jdbc-java libhibernate3-java libjavassist-java
// jars: postgresql hibernate-core hibernate-entitymanager hibernate-commons-annotations geronimo-jpa_2.0_spec
// jars: geronimo-jta-1.2-spec slf4j-api slf4j-nop dom4j antlr commons-collections3 javassist
// only with --all

import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.LockModeType;
import javax.persistence.OptimisticLockException;
import javax.persistence.Persistence;
import javax.persistence.PersistenceException;
import javax.persistence.PessimisticLockException;

class hibernate {
    static Connection raw;
    static EntityManagerFactory factory;

    static final String UNIT = """
        <persistence xmlns="http://java.sun.com/xml/ns/persistence" version="2.0"><persistence-unit name="app" transaction-type="RESOURCE_LOCAL">
        <provider>org.hibernate.ejb.HibernatePersistence</provider>
        <class>Note</class><class>Line</class><class>Setting</class><class>Payment</class></persistence-unit></persistence>""";

    static EntityManagerFactory connect(String url, String... more) {
        Map<String, String> settings = new java.util.HashMap<>(Map.of("javax.persistence.jdbc.driver", "org.postgresql.Driver",
            "javax.persistence.jdbc.url", url + "&stringtype=unspecified",
            "hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect", "hibernate.connection.pool_size", "12",
            "hibernate.jdbc.batch_size", "10", "hibernate.jdbc.batch_versioned_data", "true"));
        for (int i = 0; i < more.length; i += 2) settings.put(more[i], more[i + 1]);
        return Persistence.createEntityManagerFactory("app", settings);
    }
    static void hbm2ddl(String mode, String user, String schema) {
        connect(Page.url(user) + "&currentSchema=" + schema, "hibernate.hbm2ddl.auto", mode).close();
    }

    static List<String> raw(String sql, Object... values) throws SQLException { return Page.one(raw, sql, values); }
    static void run(Consumer<EntityManager> work) { Jpa.transaction(factory, manager -> { work.accept(manager); return null; }); }
    static Note fresh(String body) {
        Note note = new Note();
        note.body = body;
        run(manager -> manager.persist(note));
        return note;
    }
    static void same(Note note) throws SQLException {
        Page.equal(raw("SELECT version FROM note WHERE id = ?", note.id), List.of(String.valueOf(note.version)));
    }
    static void byScript(Note note) {
        try {
            raw("UPDATE note SET body = 'of a script' WHERE id = ? AND interlock.any_version(version)", note.id);
        } catch (SQLException error) {
            throw new AssertionError(error);
        }
    }
    static String body(Note note) throws SQLException { return raw("SELECT body FROM note WHERE id = ?", note.id).get(0); }
    static void refused(String state, Page.Body body) throws Exception {
        Throwable error = Page.error(PersistenceException.class, body);
        while (error != null && !(error instanceof SQLException)) error = error.getCause();
        Page.equal(error == null ? null : ((SQLException) error).getSQLState(), state);
    }

    public static void main(String[] arguments) throws Exception {
        Files.createDirectories(Path.of("classes/META-INF"));
        Files.writeString(Path.of("classes/META-INF/persistence.xml"), UNIT);
        raw = DriverManager.getConnection(Page.url());
        Page.load("hibernate", raw);
        factory = connect(Page.url());
        saves();
        blind();
        conflicts();
        race();
        leases();
        payments();
        natives();
        times();
        badInput();
        loseAll();
        schema();
        Page.done();
    }

    static void saves() {
        Page.check("the version in memory is the stored one after an insert, saves, a merge, a forced increment", () -> {
            Note note = fresh("old");
            same(note);
            Note saved = Jpa.transaction(factory, manager -> {
                Note loaded = manager.find(Note.class, note.id);
                loaded.body = "a";
                manager.flush();
                loaded.body = "b";
                return loaded;
            });
            same(saved);
            saved.body = "c";
            Note merged = Jpa.transaction(factory, manager -> manager.merge(saved));
            same(merged);
            Page.equal(body(note), "c");
            Note forced = Jpa.transaction(factory, manager -> manager.find(Note.class, note.id, LockModeType.OPTIMISTIC_FORCE_INCREMENT));
            same(forced);
            Page.equal(forced.version, merged.version + 1);
        });
        Page.check("and after a batch", () -> {
            List<Note> notes = Jpa.transaction(factory, manager -> {
                for (int n = 0; n < 25; n++) {
                    Note note = new Note();
                    note.body = "batch";
                    manager.persist(note);
                }
                manager.flush();
                List<Note> all = manager.createQuery("SELECT n FROM Note n WHERE n.body = 'batch'", Note.class).getResultList();
                all.forEach(note -> note.hits = 1);
                return all;
            });
            Page.equal(notes.size(), 25);
            for (Note note : notes) same(note);
        });
        Page.check("after a rollback it is ahead", () -> {
            Note note = fresh("old");
            EntityManager manager = factory.createEntityManager();
            manager.getTransaction().begin();
            Note loaded = manager.find(Note.class, note.id);
            loaded.body = "undone";
            manager.flush();
            manager.getTransaction().rollback();
            manager.close();
            Page.equal(loaded.version, Long.parseLong(raw("SELECT version FROM note WHERE id = ?", note.id).get(0)) + 1);
        });
        for (String call : List.of("save", "remove", "merge", "pessimistic lock", "batch"))
            Page.check(call + " of a stale entity is OptimisticLockException", () -> {
                Note note = fresh("old"), other = fresh("other");
                Page.error(OptimisticLockException.class, () -> run(manager -> {
                    if (call.equals("merge")) {
                        byScript(note);
                        note.body = "mine";
                        manager.merge(note);
                        return;
                    }
                    Note mine = manager.find(Note.class, note.id);
                    byScript(note);
                    switch (call) {
                    case "remove" -> manager.remove(mine);
                    case "pessimistic lock" -> manager.lock(mine, LockModeType.PESSIMISTIC_WRITE);
                    case "batch" -> { mine.body = "mine"; manager.find(Note.class, other.id).body = "mine"; }
                    default -> mine.body = "mine";
                    }
                }));
                Page.equal(body(note), "of a script");
                Page.equal(body(other), "other");
            });
        Page.check("ORM-5: the foreign key of a list is ignored: no false conflict", () -> {
            Note note = fresh("with lines");
            run(manager -> {
                Note mine = manager.find(Note.class, note.id);
                Line line = new Line();
                line.text = "first";
                mine.lines.add(line);
                manager.flush();
                line.text = "changed";
                manager.flush();
                line.text = "changed again";
            });
            Page.equal(raw("SELECT text, note FROM line"), List.of("changed again", note.id.toString()));
        });
        Page.check("and false without ignore_columns", () -> {
            raw("SELECT interlock.enable_versioning('line')");
            Note note = fresh("with lines");
            Page.error(OptimisticLockException.class, () -> run(manager -> {
                Line line = new Line();
                manager.find(Note.class, note.id).lines.add(line);
                manager.flush();
                line.text = "changed";
            }));
            raw("SELECT interlock.enable_versioning('line', ignore_columns => '{note}', blind_updates => 'reject')");
        });
        Page.check("ORM-4: a key that is used again does not meet the old version, which comes from the database", () -> {
            Setting setting = new Setting();
            setting.name = "mail";
            setting.value = "a";
            run(manager -> manager.persist(setting));
            Page.equal(setting.version, 1L);
            Setting stale = Jpa.transaction(factory, manager -> manager.find(Setting.class, "mail"));
            run(manager -> manager.find(Setting.class, "mail").value = "b");
            run(manager -> manager.remove(manager.find(Setting.class, "mail")));
            Setting again = new Setting();
            again.name = "mail";
            again.value = "c";
            run(manager -> manager.persist(again));
            Page.equal(List.of(again.version.toString()), raw("SELECT version FROM setting"));
            stale.value = "stale";
            Page.error(OptimisticLockException.class, () -> run(manager -> manager.merge(stale)));
            Setting saved = Jpa.transaction(factory, manager -> {
                Setting mine = manager.find(Setting.class, "mail");
                mine.value = "d";
                return mine;
            });
            Page.equal(List.of(saved.version.toString(), "d"), raw("SELECT version, value FROM setting"));
        });
    }

    static void blind() {
        for (String hql : List.of("UPDATE Note n SET n.body = 'blind' WHERE n.id = :id", "UPDATE VERSIONED Note n SET n.body = 'blind' WHERE n.id = :id",
                "DELETE FROM Note n WHERE n.id = :id"))
            Page.check("bulk HQL is refused: " + hql, () -> {
                Note note = fresh("old");
                refused("IL011", () -> run(manager -> manager.createQuery(hql).setParameter("id", note.id).executeUpdate()));
                Page.equal(body(note), "old");
            });
        Page.check("with the version it passes, or finds no row; native SQL says any_version", () -> {
            Note note = fresh("old");
            String hql = "UPDATE Note n SET n.body = 'x' WHERE n.id = :id AND n.version = :version";
            for (int wanted : new int[] {1, 0})
                run(manager -> Page.equal(manager.createQuery(hql).setParameter("id", note.id).setParameter("version", note.version).executeUpdate(), wanted));
            run(manager -> Page.equal(manager.createNativeQuery("UPDATE note SET hits = hits + 1 WHERE id = ?1 AND interlock.any_version(version)")
                .setParameter(1, note.id).executeUpdate(), 1));
        });
    }

    static void conflicts() {
        Page.check("IL001 of a function is OptimisticLockException, IL004 is PessimisticLockException, IL002 stays", () -> {
            raw("SELECT interlock.enable_marker('note')");
            factory.close(); // prepared statements that return * do not survive a new column
            factory = connect(Page.url());
            Note note = fresh("old");
            OptimisticLockException error = Page.error(OptimisticLockException.class,
                () -> run(manager -> Jpa.row(manager, "SELECT interlock.versioned_update('note', ?, ?, '{}')", note.id, 99)));
            Page.equal(error.getMessage().contains("version conflict"), true);
            run(manager -> Page.equal(Jpa.row(manager, "SELECT * FROM interlock.lock_row('note', ?, 'anna', ?)", note.id, "PT10M").get("locked"), true));
            Page.error(PessimisticLockException.class, () -> run(manager -> manager.find(Note.class, note.id).body = "x"));
            Page.error(OptimisticLockException.class, () -> run(manager -> Jpa.row(manager, "SELECT interlock.save_row('note', ?, 'bert', '{}')", note.id)));
            Page.error(OptimisticLockException.class, () -> run(manager -> Jpa.row(manager, "SELECT interlock.assert_lease('none', 1)")));
            raw("SELECT interlock.disable_marker('note')");
        });
        Page.check("retry runs all of it again, and gives up", () -> {
            Note note = fresh("old");
            int[] attempts = {0};
            Jpa.retry(factory, 5, manager -> {
                Note mine = manager.find(Note.class, note.id);
                if (++attempts[0] < 3) byScript(note);
                mine.body = "attempt " + attempts[0];
                return null;
            });
            Page.equal(body(note), "attempt 3");
            Page.error(OptimisticLockException.class, () -> Jpa.retry(factory, 2, manager -> {
                manager.find(Note.class, note.id).body = "x";
                byScript(note);
                return null;
            }));
        });
        Page.check("what reading again cures is repeated, and what is hopeless is tried once", () -> {
            Map<String, Integer> tries = Map.ofEntries(Map.entry("IL001", 2), Map.entry("40001", 2), Map.entry("40P01", 2),
                Map.entry("IL002", 1), Map.entry("IL003", 1), Map.entry("IL004", 1), Map.entry("IL005", 1),
                Map.entry("IL006", 1), Map.entry("IL007", 1), Map.entry("IL008", 1), Map.entry("P0002", 1));
            Map<String, Integer> counted = new java.util.HashMap<>();
            for (String code : tries.keySet())
                Page.error(PersistenceException.class, () -> Jpa.retry(factory, 2, manager -> {
                    counted.merge(code, 1, Integer::sum);
                    return manager.createNativeQuery("DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''" + code + "''; END'").executeUpdate();
                }));
            Page.equal(counted, tries);
        });
        Page.check("a connection that breaks before the commit leaves nothing", () -> {
            Note note = fresh("old");
            Page.error(PersistenceException.class, () -> run(manager -> {
                manager.find(Note.class, note.id).body = "undone";
                manager.flush();
                try {
                    raw("SELECT pg_terminate_backend(?, 60000)", Jpa.row(manager, "SELECT pg_backend_pid() AS pid").get("pid"));
                } catch (SQLException broken) {
                    throw new AssertionError(broken);
                }
                manager.find(Note.class, note.id).body = "lost";
                manager.flush();
            }));
            Page.equal(body(note), "old");
            factory.close();
            factory = connect(Page.url());
            run(manager -> manager.find(Note.class, note.id).body = "again");
            Page.equal(body(note), "again");
        });
    }

    static int lost(String trigger) throws Exception {
        raw("ALTER TABLE note " + trigger + " TRIGGER USER");
        Note note = fresh("hot");
        int acknowledged = Page.race(5, () -> raw("UPDATE note SET hits = hits + 1 WHERE id = ? AND interlock.any_version(version)", note.id), meet -> {
            try {
                run(manager -> {
                    Note mine = manager.find(Note.class, note.id);
                    try {
                        meet.run();
                    } catch (Exception broken) {
                        throw new AssertionError(broken);
                    }
                    mine.hits++;
                });
                return true;
            } catch (OptimisticLockException conflict) {
                return false;
            }
        });
        return acknowledged - Integer.parseInt(raw("SELECT hits FROM note WHERE id = ?", note.id).get(0));
    }

    static void race() {
        Page.check("eight workers and a script on one row: without versioning updates of the script are lost", () -> {
            int lost = lost("DISABLE");
            System.out.println("# lost without versioning: " + lost + " of 50");
            Page.equal(lost >= 5, true);
        });
        Page.check("and none with it", () -> Page.equal(lost("ENABLE"), 0));
    }

    static void leases() {
        Page.check("a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one", () -> {
            java.util.function.Supplier<Object> isFree = () -> Jpa.transaction(factory, other ->
                Jpa.row(other, "SELECT interlock.try_lock_key('one') AS free")).get("free");
            Page.equal(Keys.oneAtATime(factory, "one", manager -> isFree.get()), false);
            Page.equal(isFree.get(), true);
            EntityManager manager = factory.createEntityManager();
            Jpa.row(manager, "SELECT interlock.lock_key(?)", "one");
            Page.equal(isFree.get(), true);
            manager.close();
        });
        Page.check("work is done by the holder, and not beside it", () -> {
            fresh("");
            Page.equal(Tidy.run(factory), true);
            Page.equal(raw("SELECT count(*) FROM note WHERE body = ''"), List.of("0"));
            try (Lease lease = Lease.acquire(factory, "tidy notes", 300)) {
                Page.equal(Tidy.run(factory), false);
            }
            Page.equal(raw("SELECT FROM interlock.lease_of('tidy notes')"), null);
        });
        Page.check("it is renewed at half of its ttl", () -> {
            try (Lease lease = Lease.acquire(factory, "short", 20)) {
                String ends = "SELECT extract(epoch FROM expires_at)::text FROM interlock.lease_of('short')";
                double first = Double.parseDouble(raw(ends).get(0));
                Page.eventually(() -> Double.parseDouble(raw(ends).get(0)) > first);
            }
        });
        Page.check("when it is broken, the work is stopped and cannot commit", () -> {
            try (Lease lease = Lease.acquire(factory, "broken", 2)) {
                raw("SELECT interlock.break_lease('broken', 'test')");
                Page.error(OptimisticLockException.class, () -> run(lease::check));
                Page.eventually(lease::lost);
            }
        });
    }

    static void payments() {
        Page.check("an endpoint charges once: 201, the same again, 422, 400", () -> {
            String[] first = Payments.pay(factory, "anna", "k-1", new BigDecimal("9.90"));
            Page.equal(first[0], "201");
            Page.equal(Payments.pay(factory, "anna", "k-1", new BigDecimal("9.9")), first);
            Page.equal(Payments.pay(factory, "anna", "k-1", new BigDecimal("8"))[0], "422");
            for (String none : new String[] {null, ""}) Page.equal(Payments.pay(factory, "anna", none, null)[0], "400");
            Page.equal(raw("SELECT count(*) FROM payment"), List.of("1"));
        });
        Page.check("an error leaves the key free, and eight requests at once are one payment", () -> {
            Page.error(PersistenceException.class, () -> Payments.pay(factory, "anna", "k-2", null));
            var pool = Executors.newFixedThreadPool(8);
            Callable<String[]> request = () -> Payments.pay(factory, "anna", "k-2", new BigDecimal("3"));
            for (Future<String[]> answer : pool.invokeAll(Collections.nCopies(8, request)))
                Page.equal(List.of("201", "409").contains(answer.get()[0]), true);
            pool.shutdown();
            Page.equal(raw("SELECT count(*) FROM payment WHERE amount = 3"), List.of("1"));
        });
    }

    static void natives() {
        Page.check("createNativeQuery: what works, and what the page says to write", () -> run(manager -> {
            Note note = new Note();
            manager.persist(note);
            manager.flush();
            Object[] updated = (Object[]) manager.createNativeQuery(
                    "SELECT outcome, version FROM interlock.try_versioned_update(?1, ?2, ?3, ?4)")
                .setParameter(1, "note").setParameter(2, note.id).setParameter(3, note.version).setParameter(4, "{\"body\": \"x\"}").getSingleResult();
            Page.equal(updated[0], "updated");
            Page.equal(manager.createNativeQuery("SELECT cast(current as text) FROM interlock.try_versioned_update('note', ?1, 99, cast(?2 as jsonb))")
                .setParameter(1, note.id).setParameter(2, "{}").getSingleResult().toString().contains("\"body\": \"x\""), true);
            manager.createNativeQuery("SELECT cast(interlock.assert_version('note', ?1, ?2) as text)")
                .setParameter(1, note.id).setParameter(2, note.version + 1).getSingleResult();
        }));
        Page.check("a result of jsonb has to be cast", () -> Page.error(PersistenceException.class, () -> run(manager ->
            manager.createNativeQuery("SELECT current FROM interlock.try_versioned_update('note', 0, 1, '{}')").getSingleResult())));
        for (Object value : new Object[] {java.util.UUID.randomUUID(), java.time.LocalDate.now(), java.time.LocalDateTime.now(), java.time.OffsetDateTime.now()})
            Page.check(value.getClass().getSimpleName() + " is bound as bytes", () -> Page.error(PersistenceException.class, () -> run(manager ->
                manager.createNativeQuery("SELECT outcome FROM interlock.try_versioned_update('note', ?1, 1, '{}')").setParameter(1, value).getSingleResult())));
    }

    static String memo(Object version) {
        return (String) Jpa.transaction(factory,
            manager -> Jpa.row(manager, "SELECT outcome FROM interlock.try_versioned_update('memo', 1, ?, '{}')", version)).get("outcome");
    }

    static void times() throws Exception {
        raw("CREATE TABLE memo (id int PRIMARY KEY, changed timestamptz NOT NULL DEFAULT now())");
        raw("SELECT interlock.enable_versioning('memo', 'changed')");
        raw("INSERT INTO memo VALUES (1, '1969-12-31 12:34:56.789123+00')");
        OffsetDateTime stored = OffsetDateTime.parse(raw("SELECT to_json(changed) #>> '{}' FROM memo").get(0));
        Page.check("Jpa.row: a naive time is another moment, and refused; so is one in milliseconds", () -> {
            Page.equal(memo(stored.withOffsetSameInstant(ZoneOffset.ofHours(5)).toLocalDateTime()), "conflict");
            Page.equal(memo(java.sql.Timestamp.from(stored.toInstant().truncatedTo(ChronoUnit.MILLIS))), "conflict");
        });
        Page.check("and one with its zone is exact", () -> Page.equal(memo(stored.withOffsetSameInstant(ZoneOffset.ofHours(5))), "updated"));
    }

    static void loseAll() throws Exception {
        Page.loseAll(raw, PersistenceException.class, sql -> {
            Page.eventually(hibernate::connected);
            return (String) Jpa.transaction(factory, manager -> Jpa.row(manager, sql)).values().iterator().next();
        });
    }
    // Its pool hands out a lost connection once more.
    static boolean connected() {
        try {
            run(manager -> Jpa.row(manager, "SELECT 1"));
            return true;
        } catch (PersistenceException lost) {
            return false;
        }
    }

    static void badInput() throws Exception {
        Note note = fresh("old");
        List<String> before = raw("SELECT note::text FROM note WHERE id = ?", note.id);
        Map<String, Object[]> bad = Map.ofEntries(Map.entry("a key of another type", new Object[] {"abc", 1, "{}"}),
            Map.entry("NaN as key", new Object[] {Double.NaN, 1, "{}"}), Map.entry("bytes as key", new Object[] {new byte[] {0, -1}, 1, "{}"}),
            Map.entry("a number that is too large", new Object[] {new BigDecimal("1e30"), 1, "{}"}),
            Map.entry("null as key", new Object[] {null, 1, "{}"}), Map.entry("null as version", new Object[] {note.id, null, "{}"}),
            Map.entry("NaN as version", new Object[] {note.id, Double.NaN, "{}"}),
            Map.entry("a fraction as version", new Object[] {note.id, new BigDecimal("0.5"), "{}"}),
            Map.entry("a date before 1970 as version", new Object[] {note.id, new java.util.Date(-1), "{}"}),
            Map.entry("an array as version", new Object[] {note.id, new Integer[] {0}, "{}"}),
            Map.entry("null as changes", new Object[] {note.id, 0, null}), Map.entry("a map as changes", new Object[] {note.id, 0, new java.util.HashMap<>()}),
            Map.entry("no JSON as changes", new Object[] {note.id, 0, "body"}), Map.entry("NaN in changes", new Object[] {note.id, 0, "{\"hits\": NaN}"}),
            Map.entry("an unknown column", new Object[] {note.id, 0, "{\"title\": 1}"}),
            Map.entry("a character that PostgreSQL has not", new Object[] {note.id, 0, "{\"body\": \"a\0b\"}"}));
        for (var each : bad.entrySet())
            Page.check(each.getKey() + " is an error and changes nothing", () -> {
                Page.error(PersistenceException.class, () -> run(manager -> {
                    Object[] values = each.getValue();
                    manager.createNativeQuery("SELECT interlock.versioned_update('note', ?1, ?2, ?3)")
                        .setParameter(1, values[0]).setParameter(2, values[1]).setParameter(3, values[2]).getSingleResult();
                }));
                Page.equal(raw("SELECT note::text FROM note WHERE id = ?", note.id), before);
            });
    }

    static void schema() throws Exception {
        String guards = "SELECT jsonb_agg(g ORDER BY g::text)::text FROM (SELECT rel::text, mechanism, settings, findings FROM interlock.guards) g";
        for (String mode : List.of("validate", "update"))
            Page.check("hbm2ddl " + mode + " leaves our objects", () -> {
                List<String> before = raw(guards);
                hbm2ddl(mode, mode.equals("validate") ? "app" : Page.OWNER, "public");
                Page.equal(raw(guards), before);
            });
        Page.check("create drops them, which advise() finds; import.sql guards the table again", () -> {
            raw("CREATE SCHEMA made");
            String found = "SELECT count(*) FROM interlock.advise() WHERE rel = 'made.note'::regclass AND finding LIKE 'updates do not move column%'";
            hbm2ddl("create", Page.OWNER, "made");
            Page.equal(raw(found), List.of("1"));
            Files.writeString(Path.of("classes/import.sql"), "SELECT interlock.enable_versioning('note');\n");
            hbm2ddl("create", Page.OWNER, "made");
            Page.equal(raw(found), List.of("0"));
            Page.equal(raw("SELECT enforced FROM interlock.guards WHERE rel = 'made.note'::regclass"), List.of("true"));
        });
    }
}
