// The page docs/clients/libpq.md, as an application in C runs it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE). ROOT is the directory of the project.
// needs: gcc

#include "blocks.h"
#include "page.h"

#include <memory>

using page::check;
using page::equal;

namespace {

struct Error : std::runtime_error {
    std::string sqlstate;
    Error(const char *message, const char *state) : runtime_error(message), sqlstate(state ? state : "") {}
};

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

Connection connect()
{
    Connection connection(PQconnectdb(""), PQfinish);
    if (PQstatus(connection.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection.get()));
    PQsetNoticeProcessor(connection.get(), [](void *, const char *) {}, nullptr);
    return connection;
}

page::Query query_of(PGconn *connection)
{
    return [connection](const std::string &sql, const page::Row &values) {
        std::vector<const char *> texts;
        for (const page::Value &value : values) texts.push_back(value ? value->c_str() : nullptr);
        Result result(values.empty() ? PQexec(connection, sql.c_str()) : ask(connection, sql.c_str(), static_cast<int>(texts.size()), texts.data()), PQclear);
        if (kind_of(result.get()) != DONE) throw Error(PQresultErrorMessage(result.get()), PQresultErrorField(result.get(), PG_DIAG_SQLSTATE));
        std::vector<page::Row> rows;
        for (int row = 0; row < PQntuples(result.get()); row++) {
            rows.emplace_back();
            for (int column = 0; column < PQnfields(result.get()); column++)
                rows.back().push_back(PQgetisnull(result.get(), row, column) ? page::Value() : page::Value(PQgetvalue(result.get(), row, column)));
        }
        return rows;
    };
}

PGconn *app;
page::Query raw;

page::Value one(const std::string &sql, const page::Row &values = {})
{
    std::vector<page::Row> rows = raw(sql, values);
    return rows.empty() || rows[0].empty() ? page::Value() : rows[0][0];
}
std::string note(const std::string &body) { return *one("INSERT INTO note (body) VALUES ($1) RETURNING id", {body}); }
std::string version(const std::string &id) { return *one("SELECT version FROM note WHERE id = $1", {id}); }
page::Value body(const std::string &id) { return one("SELECT body FROM note WHERE id = $1", {id}); }
void by_script(const std::string &id) { one("UPDATE note SET body = 'of a script' WHERE id = $1 AND interlock.any_version(version)", {id}); }
void refused(const std::string &state, const std::function<void()> &call) { equal(page::error<Error>(call).sqlstate, state); }

void saves()
{
    check("the page is C as well", [] {
        equal(std::system("gcc -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wno-unused-function -Werror -fsyntax-only"
                          " $(pkg-config --cflags libpq) -x c blocks.h"), 0);
    });
    check("a save moves the version; a stale one is STALE, with JSON in DETAIL", [] {
        const std::string id = note("old");
        equal(save_note(app, id.c_str(), "1", R"({"body": "new"})"), DONE);
        equal(save_note(app, id.c_str(), "1", R"({"body": "stale"})"), STALE);
        const char *values[] = {id.c_str()};
        Result result(ask(app, "SELECT interlock.versioned_update('note', $1, 1, '{}')", 1, values), PQclear);
        equal(one("SELECT $1::jsonb->>'version'", {PQresultErrorField(result.get(), PG_DIAG_MESSAGE_DETAIL)}), "2");
        equal(body(id), "new");
    });
    check("an UPDATE that finds no row is STALE; a blind one is refused", [] {
        const std::string id = note("old");
        by_script(id);
        const char *values[] = {id.c_str()};
        equal(run(app, "UPDATE note SET body = 'mine' WHERE id = $1 AND version = 1", 1, values), STALE);
        equal(run(app, "UPDATE note SET body = 'mine' WHERE id = $1", 1, values), FAILED);
        equal(std::string(PQerrorMessage(app)).find("blind update") != std::string::npos, true);
        equal(body(id), "of a script");
    });
    check("after ROLLBACK TO a savepoint the version is the old one", [] {
        const std::string id = note("old");
        equal(transaction(app, 1, [](PGconn *connection, void *id) {
            const char *values[] = {static_cast<const std::string *>(id)->c_str()};
            run(connection, "SAVEPOINT before", 0, nullptr);
            run(connection, "UPDATE note SET body = 'undone' WHERE id = $1 AND version = 1", 1, values);
            run(connection, "ROLLBACK TO before", 0, nullptr);
            return run(connection, "UPDATE note SET body = 'mine' WHERE id = $1 AND version = 1", 1, values);
        }, const_cast<std::string *>(&id)), DONE);
        equal(version(id), "2");
    });
    check("what reading again cures is repeated, and what is hopeless is tried once", [] {
        const page::Row repeated{"IL001", "40001", "40P01"}, hopeless{"IL002", "IL003", "IL004", "IL005", "IL006", "IL007", "IL008", "P0002"};
        struct Try { std::string sql; int count; };
        auto tries = [](const page::Value &code) {
            Try data{"DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''" + *code + "''; END'", 0};
            transaction(app, 2, [](PGconn *connection, void *data) {
                Try *one = static_cast<Try *>(data);
                one->count++;
                return run(connection, one->sql.c_str(), 0, nullptr);
            }, &data);
            return *code + ' ' + std::to_string(data.count);
        };
        for (const page::Value &code : repeated) equal(tries(code), *code + " 2");
        for (const page::Value &code : hopeless) equal(tries(code), *code + " 1");
    });
    check("in a pipeline the statements after a conflict are aborted, up to the next sync", [] {
        const std::string id = note("old");
        const char *values[] = {id.c_str()};
        std::string states;
        PQenterPipelineMode(app);
        PQsendQueryParams(app, "SELECT interlock.versioned_update('note', $1, 9, '{}')", 1, nullptr, values, nullptr, nullptr, 0);
        PQsendQueryParams(app, "SELECT 1", 0, nullptr, nullptr, nullptr, nullptr, 0);
        PQpipelineSync(app);
        PQsendQueryParams(app, "SELECT interlock.versioned_update('note', $1, 1, '{}')", 1, nullptr, values, nullptr, nullptr, 0);
        PQpipelineSync(app);
        for (int syncs = 0; syncs < 2;) {
            Result result(PQgetResult(app), PQclear);
            if (!result) continue;
            if (PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) syncs++;
            else states += std::string(PQresStatus(PQresultStatus(result.get()))) + " ";
        }
        PQexitPipelineMode(app);
        equal(states, "PGRES_FATAL_ERROR PGRES_PIPELINE_ABORTED PGRES_TUPLES_OK ");
        equal(version(id), "2");
    });
}

void parameters()
{
    check("bad input is an error, and nothing changes", [] {
        raw("CREATE TABLE every (id uuid PRIMARY KEY, small int, day date, bytes bytea, changed timestamptz NOT NULL DEFAULT now());"
            "SELECT interlock.enable_versioning('every', 'changed')", {});
        const std::string id = *one("INSERT INTO every VALUES (gen_random_uuid()) RETURNING id");
        const page::Query query = query_of(app);
        auto update = [&](const page::Value &key, const page::Value &read, const page::Value &changes) {
            query("SELECT interlock.versioned_update('every', $1, $2, $3)", {key, read, changes});
        };
        auto read = [] { return one("SELECT changed FROM every"); };
        update(id, read(), R"({"day": "1969-12-31", "bytes": "\\x00ff"})");
        const page::Value before = one("SELECT every::text FROM every");
        equal(one("SELECT day || ' ' || encode(bytes, 'hex') FROM every"), "1969-12-31 00ff");
        refused("22P02", [&] { update(id, read(), R"({"small": "x"})"); });
        refused("22003", [&] { update(id, read(), R"({"small": 99999999999999999999})"); });
        refused("22P02", [&] { update(id, read(), R"({"small": NaN})"); });
        refused("22P02", [&] { update("no uuid", read(), "{}"); });
        refused("22007", [&] { update(id, "nan", "{}"); });
        refused("22004", [&] { update(id, std::nullopt, "{}"); });
        refused("22004", [&] { update(id, read(), std::nullopt); });
        equal(one("SELECT every::text FROM every"), before);
    });
    check("binary parameters with types", [] {
        const std::string id = note("old");
        const uint32_t key = __builtin_bswap32(static_cast<uint32_t>(std::stoi(id)));
        const uint64_t read = __builtin_bswap64(1);
        const Oid types[] = {23, 20};
        const char *values[] = {reinterpret_cast<const char *>(&key), reinterpret_cast<const char *>(&read)};
        const int lengths[] = {4, 8}, formats[] = {1, 1};
        Result result(PQexecParams(app, "SELECT interlock.versioned_update('note', $1::int, $2::bigint, '{}')", 2, types, values, lengths, formats, 0), PQclear);
        equal(PQgetvalue(result.get(), 0, 0), "2");
    });
}

int lost(const std::string &compares)
{
    const std::string id = note("hot");
    const int acknowledged = page::race(
        5, [&] { one("UPDATE note SET hits = hits + 1 WHERE id = $1 AND interlock.any_version(version)", {id}); },
        [&] {
            std::shared_ptr<PGconn> own(connect().release(), PQfinish);
            return [&, own](const std::function<void()> &meet) {
                const page::Row row = query_of(own.get())("SELECT hits, version FROM note WHERE id = $1", {id})[0];
                meet();
                const std::string hits = std::to_string(std::stoi(*row[0]) + 1), sql = "UPDATE note SET hits = $1 WHERE id = $2 AND " + compares;
                const char *values[] = {hits.c_str(), id.c_str(), row[1]->c_str()};
                return run(own.get(), sql.c_str(), 3, values) == DONE;
            };
        });
    return acknowledged - std::stoi(*one("SELECT hits FROM note WHERE id = $1", {id}));
}

void races()
{
    check("eight workers and a script on one row: without the version updates are lost", [] {
        const int without = lost("$3::bigint > 0 AND interlock.any_version(version)");
        std::cout << "# lost without the version: " << without << " of 50" << std::endl;
        equal(without >= 40, true);
    });
    check("and none with it", [] { equal(lost("version = $3"), 0); });
    check("add_hit by eight threads loses none", [] {
        std::string id = note("hot");
        std::vector<std::thread> threads;
        std::atomic<int> hits = 0;
        for (int n = 0; n < 8; n++)
            threads.emplace_back([&] {
                Connection own = connect();
                for (int hit = 0; hit < 5; hit++) hits += add_hit(own.get(), id.data()) == DONE;
            });
        for (std::thread &thread : threads) thread.join();
        equal(hits.load(), 40);
        equal(one("SELECT hits FROM note WHERE id = $1", {id}), "40");
    });
}

void leases()
{
    check("a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one", [] {
        auto free = [] { return one("SELECT interlock.try_lock_key('one')"); };
        std::string within;
        auto look = [](PGconn *, void *found) {
            *static_cast<std::string *>(found) = *one("SELECT interlock.try_lock_key('one')");
            return DONE;
        };
        equal(one_at_a_time(app, "one", look, &within), DONE);
        equal(within, "f");
        equal(free(), "t");
        const char *name = "one";
        equal(run(app, "SELECT interlock.lock_key($1)", 1, &name), DONE);
        equal(free(), "t");
    });
    check("work is done by the holder, and not beside it", [] {
        note("");
        note("");
        equal(tidy_notes(app), 1);
        equal(one("SELECT count(*) FROM note WHERE body = ''"), "0");
        lease held;
        equal(acquire(&held, app, "tidy notes", 300), 1);
        equal(tidy_notes(app), 0);
        release(&held);
        equal(one("SELECT 'held' FROM interlock.lease_of('tidy notes')"), "null");
    });
    check("it is renewed at half of its ttl", [] {
        lease held;
        equal(acquire(&held, app, "short", 20), 1);
        auto ends = [] { return std::stod(*one("SELECT extract(epoch FROM expires_at) FROM interlock.lease_of('short')")); };
        const double first = ends();
        page::eventually([&] { return beat(&held) && ends() > first; });
        release(&held);
    });
    check("when it is broken, the work is stopped and cannot commit", [] {
        lease held;
        equal(acquire(&held, app, "broken", 2), 1);
        one("SELECT interlock.break_lease('broken', 'test')");
        equal(transaction(app, 1, tidy_one, &held), LOST);
        page::eventually([&] { return !beat(&held); });
    });
}

int paid(PGconn *connection, const char *key, const char *request, std::string *body = nullptr)
{
    payment made{"anna", key, request, 0, ""};
    const enum kind kind = pay(connection, &made);
    if (body) *body = made.body;
    return kind == DONE ? made.status : -1;
}

void payments()
{
    check("an endpoint charges once: 201, the same again, 422, 400", [] {
        std::string first, again;
        equal(paid(app, "k-1", R"({"amount": 9.90})", &first), 201);
        equal(paid(app, "k-1", R"({"amount": 9.9})", &again), 201);
        equal(again, first);
        equal(paid(app, "k-1", R"({"amount": 8})"), 422);
        for (const char *none : {static_cast<const char *>(nullptr), ""}) equal(paid(app, none, "{}"), 400);
        equal(one("SELECT count(*) FROM payment"), "1");
    });
    check("an error leaves the key free, and eight requests at once are one payment", [] {
        equal(paid(app, "k-2", "{}"), -1);
        std::vector<std::thread> threads;
        std::atomic<int> answered = 0;
        for (int n = 0; n < 8; n++)
            threads.emplace_back([&] {
                Connection own = connect();
                const int status = paid(own.get(), "k-2", R"({"amount": 3})");
                answered += status == 201 || status == 409;
            });
        for (std::thread &thread : threads) thread.join();
        equal(answered.load(), 8);
        equal(one("SELECT count(*) FROM payment WHERE amount = 3"), "1");
    });
}

void breaks()
{
    raw("CREATE FUNCTION charge(jsonb) RETURNS jsonb LANGUAGE sql AS $$INSERT INTO payment (customer, amount) VALUES ('x', 77) RETURNING '{}'::jsonb$$;"
        "CREATE TABLE task (id int PRIMARY KEY, status text NOT NULL DEFAULT 'new'); INSERT INTO task VALUES (1);"
        "SELECT interlock.define_transitions('task', 'status', '{\"new\": [\"done\"]}');"
        "SELECT interlock.define_idempotency_scope('lost'), interlock.grant_idempotency_scope('lost', 'app')", {});
    const std::string id = note("old"), read = version(id);
    for (const std::string &call : std::vector<std::string>{"versioned_update('note', " + id + ", " + read + ", '{\"body\": \"x\"}')", "lock_key('k')",
             "try_transition('task', 1, 'new', 'done')", "idempotency_claim('lost', 'k')", "run_once('lost', 'r', 'charge(jsonb)', '{}')"})
        check("a connection that breaks after " + call.substr(0, call.find('(')) + ", before the commit, leaves nothing; the next one does it", [&] {
            const std::string state = "SELECT concat_ws(' ', (SELECT sum(version) FROM note), (SELECT status FROM task),"
                                      " (SELECT count(*) FROM interlock.idempotency WHERE scope = 'lost'), (SELECT count(*) FROM payment))";
            const page::Value before = one(state);
            Connection own = connect();
            std::string sql = "SELECT * FROM interlock." + call;
            equal(transaction(own.get(), 3, [](PGconn *connection, void *sql) {
                const enum kind kind = run(connection, static_cast<const char *>(sql), 0, nullptr);
                one("SELECT pg_terminate_backend($1, 60000)", {std::to_string(PQbackendPID(connection))});
                return kind;
            }, sql.data()), FAILED);
            equal(one(state), before);
            equal(run(app, sql.c_str(), 0, nullptr), DONE);
        });
    check("what is repeated after its commit was not answered is a conflict, or the same answer", [&] {
        equal(save_note(app, id.c_str(), read.c_str(), "{}"), STALE);
        equal(one("SELECT outcome FROM interlock.run_once('lost', 'r', 'charge(jsonb)', '{}')"), "replay");
    });
}

} // namespace

int main()
{
    Connection first = connect(), second = connect();
    raw = query_of(first.get());
    page::load("libpq", raw);
    Connection third = connect();
    app = third.get();
    saves();
    parameters();
    races();
    leases();
    payments();
    breaks();
    page::lose_all(raw, [] {
        std::shared_ptr<PGconn> own(connect().release(), PQfinish);
        return [own](const std::string &sql, const page::Row &values) { return query_of(own.get())(sql, values); };
    });
    page::call_all("libpq", query_of(second.get()), raw);
    return page::done();
}
