// Lines of TAP for what the code of a page of docs/clients does, calls of every function, and eight workers on one row.
// The blocks of Java of the page are compiled with the test.

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.SocketFactory;

public final class Page {
    static final int WORKERS = 8;
    private static int tests;
    private static boolean failed;

    interface Body { void run() throws Exception; }
    interface Query { String first(String sql) throws Exception; }
    interface Attempt { boolean run(Body meet) throws Exception; }

    static void check(String name, Body body) {
        tests++;
        try {
            body.run();
            System.out.println("ok " + tests + " - " + name);
        } catch (Throwable error) {
            failed = true;
            System.out.println("not ok " + tests + " - " + name + "\n# " + error);
            for (StackTraceElement line : error.getStackTrace()) System.out.println("# " + line);
            for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) System.out.println("# by " + cause);
        }
    }

    static void done() {
        System.out.println("1.." + tests);
        System.exit(failed ? 1 : 0);
    }

    static void equal(Object found, Object wanted) {
        if (!Objects.deepEquals(found, wanted)) throw new AssertionError("found " + found + ", wanted " + wanted);
    }

    static <T extends Throwable> T error(Class<T> type, Body body) throws Exception {
        try {
            body.run();
        } catch (Throwable error) {
            if (type.isInstance(error)) return type.cast(error);
            throw new AssertionError("no " + type + ": " + error, error);
        }
        throw new AssertionError("no " + type);
    }

    static SQLException refused(String state, Body body) throws Exception {
        SQLException error = error(SQLException.class, body);
        equal(error.getSQLState(), state);
        return error;
    }

    // Until it is true; for as long as the whole suite may take.
    static void eventually(Callable<Boolean> condition) throws Exception {
        for (long end = System.nanoTime() + 180_000_000_000L; !condition.call(); Thread.sleep(20))
            if (System.nanoTime() > end) throw new AssertionError("it does not come true");
    }

    // Eight workers and a raw writer add one to the same number. An attempt reads, calls what it is given, writes, and
    // returns whether the write was acknowledged. In each round all of them have read before the raw writer writes, and
    // write after it. Returns how many acknowledged additions there were.
    static int race(int rounds, Body raw, Attempt attempt) throws Exception {
        AtomicInteger acknowledged = new AtomicInteger();
        CyclicBarrier read = new CyclicBarrier(WORKERS + 1), written = new CyclicBarrier(WORKERS + 1);
        List<Thread> workers = new ArrayList<>();
        List<Throwable> errors = new ArrayList<>();
        for (int n = 0; n < WORKERS; n++)
            workers.add(new Thread(() -> {
                try {
                    for (int round = 0; round < rounds; round++) {
                        read.await(); // all of them begin with the same row
                        Body meet = () -> { read.await(); written.await(); };
                        while (!attempt.run(meet)) meet = () -> {};
                        acknowledged.incrementAndGet();
                    }
                } catch (Throwable error) {
                    synchronized (errors) { errors.add(error); }
                    read.reset();
                    written.reset();
                }
            }));
        for (Thread worker : workers) worker.start();
        for (int round = 0; round < rounds; round++) {
            read.await();
            read.await();
            raw.run();
            acknowledged.incrementAndGet();
            written.await();
            raw.run();
            acknowledged.incrementAndGet();
        }
        for (Thread worker : workers) worker.join();
        if (!errors.isEmpty()) throw new AssertionError(errors.get(0));
        return acknowledged.get();
    }

    // --- The server of the run, which is reached by a socket of the file system

    static final String OWNER = System.getenv("PGUSER"); // a superuser, which sets up what the page does not
    private static String user = OWNER;

    static String url() { return url(user); }
    static String url(String user) {
        return "jdbc:postgresql://localhost/" + System.getenv("PGDATABASE") + "?user=" + user + "&socketFactory=Page$UnixSockets";
    }

    public static final class UnixSockets extends SocketFactory {
        @Override public Socket createSocket() { return new UnixSocket(); }
        @Override public Socket createSocket(String host, int port) { return createSocket(); }
        @Override public Socket createSocket(String host, int port, InetAddress local, int localPort) { return createSocket(); }
        @Override public Socket createSocket(InetAddress host, int port) { return createSocket(); }
        @Override public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) { return createSocket(); }
    }

    private static final class UnixSocket extends Socket {
        private SocketChannel channel;

        @Override public void connect(SocketAddress address, int timeout) throws IOException {
            channel = SocketChannel.open(UnixDomainSocketAddress.of(System.getenv("PGHOST") + "/.s.PGSQL." + System.getenv("PGPORT")));
        }
        @Override public InputStream getInputStream() { return Channels.newInputStream(channel); }
        @Override public OutputStream getOutputStream() { return Channels.newOutputStream(channel); }
        @Override public void close() throws IOException { if (channel != null) channel.close(); }
        @Override public boolean isClosed() { return channel != null && !channel.isOpen(); }
        @Override public boolean isConnected() { return channel != null; }
        @Override public void setTcpNoDelay(boolean on) {}
        @Override public void setKeepAlive(boolean on) {}
        @Override public void setSoTimeout(int timeout) {}
        @Override public int getSoTimeout() { return 0; }
        @Override public int getSendBufferSize() { return 8192; }
        @Override public void setSendBufferSize(int size) {}
        @Override public void setReceiveBufferSize(int size) {}
    }

    // The first row of a query as texts, or null.
    static List<String> one(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
            if (!statement.execute()) return null;
            ResultSet rows = statement.getResultSet();
            if (!rows.next()) return null;
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++)
                row.add(rows.getObject(i) instanceof Boolean is ? is.toString() : rows.getString(i));
            return row;
        }
    }

    static List<List<String>> rows(Connection connection, String sql, Object... values) throws SQLException {
        List<List<String>> all = new ArrayList<>();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
            ResultSet rows = statement.executeQuery();
            while (rows.next()) {
                List<String> row = new ArrayList<>();
                for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) row.add(rows.getString(i));
                all.add(row);
            }
        }
        return all;
    }

    // Runs the blocks of SQL of the page. From now on url() is that of the role app, which has on the tables of the page what the
    // page grants. On tables of tests it may do what plain SQL does.
    static void load(String page, Connection connection) throws Exception {
        String text = Files.readString(Path.of(System.getenv("ROOT"), "docs/clients", page + ".md"));
        Matcher blocks = Pattern.compile("^```sql\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL).matcher(text);
        while (blocks.find()) connection.createStatement().execute(blocks.group(1));
        connection.createStatement().execute("ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app;"
            + "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app");
        user = "app";
    }

    // --- Connections that are lost in the middle of a call

    // Every call of lost.json (lib/client.mjs says what is in it). The application returns the first value of a query, on a
    // connection that lives, and raises lost when it dies.
    static void loseAll(Connection owner, Class<? extends Exception> lost, Query application) throws Exception {
        String file = Files.readString(Path.of("lib/lost.json"));
        for (List<String> setup : rows(owner, "SELECT jsonb_array_elements_text(?::jsonb->'setup')", file)) owner.createStatement().execute(setup.get(0));
        String state = one(owner, "SELECT ?::jsonb->>'state'", file).get(0);
        for (List<String> call : rows(owner, "SELECT c->>'name', c->>'sql', c->>'first', c->>'again' FROM jsonb_array_elements(?::jsonb->'calls') c", file))
            check(call.get(0) + " that is lost in the middle changes nothing and can be repeated, also after an unknown outcome", () -> {
                List<String> before = one(owner, state);
                error(lost, () -> application.first("WITH done AS MATERIALIZED (" + call.get(1)
                    + ") SELECT (SELECT count(done) FROM done), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)::text"));
                equal(one(owner, state), before);
                equal(application.first(call.get(1)), call.get(2));
                if (call.get(3) != null) equal(application.first(call.get(1)), call.get(3));
                else error(lost, () -> application.first(call.get(1)));
            });
        for (List<String> teardown : rows(owner, "SELECT jsonb_array_elements_text(?::jsonb->'teardown')", file)) owner.createStatement().execute(teardown.get(0));
    }

    // --- Every function

    // Every call of calls.json, of which calls.sql makes tables on another connection.
    static void callAll(String driver, Connection calls, Connection connection) throws Exception {
        calls.createStatement().execute(Files.readString(Path.of("lib/calls.sql")));
        one(calls, "INSERT INTO calls_file VALUES (?, ?::jsonb)", driver, Files.readString(Path.of("lib/calls.json")));
        for (List<String> setup : rows(calls, "SELECT sql FROM call_setup ORDER BY i")) connection.createStatement().execute(setup.get(0));
        for (List<String> call : rows(calls, "SELECT n, instead, name, fails, in_transaction, sql, answer IS NOT NULL FROM call ORDER BY n, instead DESC"))
            check(call.get(2), () -> {
                if (call.get(3).equals("t")) error(SQLException.class, () -> callOne(call, calls, connection));
                else callOne(call, calls, connection);
            });
    }

    private static void callOne(List<String> call, Connection calls, Connection connection) throws Exception {
        Object[] id = {Integer.valueOf(call.get(0)), call.get(1).equals("t")};
        String of = " WHERE n = ? AND instead = ? ORDER BY i";
        connection.setAutoCommit(call.get(4).equals("f"));
        try {
            for (List<String> before : rows(calls, "SELECT sql FROM call_before" + of, id)) connection.createStatement().execute(before.get(0));
            List<Object> values = new ArrayList<>();
            try (PreparedStatement arguments = calls.prepareStatement("SELECT kind, value, elements, element_kind FROM call_argument" + of)) {
                arguments.setObject(1, id[0]);
                arguments.setObject(2, id[1]);
                for (ResultSet row = arguments.executeQuery(); row.next();) values.add(value(row, connection));
            }
            // $1 to $n as JDBC has them: question marks in the order of the text; an operator is doubled
            List<Object> ordered = new ArrayList<>();
            String sql = Pattern.compile("\\$(\\d+)").matcher(call.get(5).replace("?", "??")).replaceAll(place -> {
                ordered.add(values.get(Integer.parseInt(place.group(1)) - 1));
                return "?";
            });
            List<String> found = one(connection, sql, ordered.toArray());
            if (call.get(6).equals("t"))
                equal(found, rows(calls, "SELECT value FROM call_answer" + of, id).stream().map(row -> row.get(0)).toList());
        } finally {
            if (!connection.getAutoCommit()) connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    private static Object value(ResultSet argument, Connection connection) throws Exception {
        String value = argument.getString(2);
        switch (argument.getString(1)) {
        case "null": return null;
        case "boolean": return Boolean.valueOf(value);
        case "number":
            BigDecimal number = new BigDecimal(value);
            return number.scale() > 0 ? number.doubleValue() : number.toBigIntegerExact().bitLength() < 32 ? (Object) number.intValueExact() : number.longValueExact();
        case "array":
            String[] elements = (String[]) argument.getArray(3).getArray();
            if (!"number".equals(argument.getString(4))) return connection.createArrayOf("text", elements);
            return connection.createArrayOf("int4", java.util.Arrays.stream(elements).map(Integer::valueOf).toArray());
        case "$bigint": return Long.valueOf(value);
        case "$uuid": return UUID.fromString(value);
        case "$date": return LocalDate.parse(value);
        case "$timestamp": return OffsetDateTime.parse(value);
        case "$bytes": return HexFormat.of().parseHex(value);
        case "$query":
            try (ResultSet row = connection.createStatement().executeQuery(value)) {
                row.next();
                return row.getObject(1);
            }
        default: return value; // string, object, $json: JSON is a text
        }
    }
}
