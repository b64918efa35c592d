// The page docs/clients/libpqxx.md, as an application runs it.
// Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE). ROOT is the directory of the project.
// needs: libpqxx-dev
// only with --all

#include "blocks.h"
#include "page.h"

#include <cmath>
#include <memory>
#include <utility>

using page::check;
using page::equal;

namespace {

template <std::size_t... I>
pqxx::result with(pqxx::transaction_base &work, const std::string &sql, const page::Row &values, std::index_sequence<I...>)
{
    return work.exec_params(sql, (values[I] ? values[I]->c_str() : nullptr)...);
}

pqxx::result with_parameters(pqxx::transaction_base &work, const std::string &sql, const page::Row &values)
{
    switch (values.size()) {
    case 0: return work.exec(sql);
    case 1: return with(work, sql, values, std::make_index_sequence<1>());
    case 2: return with(work, sql, values, std::make_index_sequence<2>());
    case 3: return with(work, sql, values, std::make_index_sequence<3>());
    case 4: return with(work, sql, values, std::make_index_sequence<4>());
    case 5: return with(work, sql, values, std::make_index_sequence<5>());
    case 6: return with(work, sql, values, std::make_index_sequence<6>());
    case 7: return with(work, sql, values, std::make_index_sequence<7>());
    default: return with(work, sql, values, std::make_index_sequence<8>());
    }
}

page::Query query_of(pqxx::connection &connection)
{
    return [&connection](const std::string &sql, const page::Row &values) {
        pqxx::nontransaction work(connection);
        std::vector<page::Row> rows;
        for (const pqxx::row &row : with_parameters(work, sql, values)) {
            rows.emplace_back();
            for (const pqxx::field &field : row)
                rows.back().push_back(field.is_null() ? page::Value() : page::Value(field.c_str()));
        }
        return rows;
    };
}

pqxx::connection *connected;
page::Query raw;
pqxx::connection &connection() { return *connected; }

page::Value one(const std::string &sql, const page::Row &values = {})
{
    std::vector<page::Row> rows = raw(sql, values);
    return rows.empty() || rows[0].empty() ? page::Value() : rows[0][0];
}

int note(const std::string &body) { return std::stoi(*one("INSERT INTO note (body) VALUES ($1) RETURNING id", {body})); }
long long version(int id) { return std::stoll(*one("SELECT version FROM note WHERE id = $1", {std::to_string(id)})); }
page::Value body(int id) { return one("SELECT body FROM note WHERE id = $1", {std::to_string(id)}); }
void by_script(int id)
{
    one("UPDATE note SET body = 'of a script' WHERE id = $1 AND interlock.any_version(version)", {std::to_string(id)});
}
void refused(const std::string &state, const std::function<void()> &call)
{
    equal(page::error<pqxx::sql_error>(call).sqlstate(), state);
}

void saves()
{
    check("a save moves the version, and a stale one is StaleError with JSON in its message", [] {
        const int id = note("old");
        equal(save_note(connection(), id, 1, R"({"body": "new"})"), 2);
        const StaleError error = page::error<StaleError>([&] { save_note(connection(), id, 1, "{}"); });
        equal(error.sqlstate, "IL001");
        equal(std::string(error.what()).find(R"("expected": 1, "version": 2})") != std::string::npos, true);
        equal(body(id), "new");
    });
    check("an UPDATE that finds no row is one, too; a blind one is refused", [] {
        const int id = note("old");
        by_script(id);
        page::error<StaleError>([&] {
            transaction(connection(), [&](pqxx::work &work) {
                return written(work.exec_params("UPDATE note SET body = 'mine' WHERE id = $1 AND version = 1", id));
            });
        });
        refused("IL011", [&] {
            transaction(connection(), [&](pqxx::work &work) { return work.exec_params("UPDATE note SET body = 'x' WHERE id = $1", id); });
        });
        equal(body(id), "of a script");
    });
    check("after a rollback of a subtransaction the version is the old one", [] {
        const int id = note("old");
        transaction(connection(), [&](pqxx::work &work) {
            {
                pqxx::subtransaction inner(work);
                inner.exec("SELECT"); // of libpqxx 6, whose savepoint exec_params does not set
                written(inner.exec_params("UPDATE note SET body = 'undone' WHERE id = $1 AND version = 1", id));
            }
            return written(work.exec_params("UPDATE note SET body = 'mine' WHERE id = $1 AND version = 1", id));
        });
        equal(version(id), 2);
    });
    check("perform repeats the whole, and gives up", [] {
        const int id = note("old");
        int attempts = 0;
        auto save = [&](int conflicts) {
            return [&, conflicts] {
                return transaction(connection(), [&](pqxx::work &work) {
                    const long long read = work.exec_params1("SELECT version FROM note WHERE id = $1", id)[0].as<long long>();
                    if (++attempts <= conflicts) by_script(id);
                    return written(work.exec_params("UPDATE note SET body = $3 WHERE id = $1 AND version = $2", id, read, attempts));
                });
            };
        };
        pqxx::perform(save(2), 5);
        equal(body(id), "3");
        attempts = 0;
        page::error<StaleError>([&] { pqxx::perform(save(9), 2); });
        equal(attempts, 2);
    });
    check("what reading again cures is repeated, and what is hopeless is tried once", [] {
        const page::Row repeated{"IL001", "40001", "40P01"}, hopeless{"IL002", "IL003", "IL004", "IL005", "IL006", "IL007", "IL008", "P0002"};
        auto tries = [](const page::Value &code) {
            int count = 0;
            page::error<std::exception>([&] {
                pqxx::perform([&] {
                    count++;
                    return transaction(connection(), [&](pqxx::work &work) {
                        return work.exec("DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''" + *code + "''; END'");
                    });
                }, 2);
            });
            return *code + ' ' + std::to_string(count);
        };
        for (const page::Value &code : repeated) equal(tries(code), *code + " 2");
        for (const page::Value &code : hopeless) equal(tries(code), *code + " 1");
    });
}

void parameters()
{
    check("bad input is an error, and nothing changes", [] {
        raw("CREATE TABLE every (id uuid PRIMARY KEY, small int, day date, bytes bytea, changed timestamptz NOT NULL DEFAULT now());"
            "SELECT interlock.enable_versioning('every', 'changed')", {});
        const std::string id = *one("INSERT INTO every VALUES (gen_random_uuid()) RETURNING id");
        auto update = [&](auto key, auto read, auto changes) {
            return transaction(connection(), [&](pqxx::work &work) {
                return work.exec_params("SELECT interlock.versioned_update('every', $1, $2, $3)", key, read, changes);
            });
        };
        auto read = [] { return *one("SELECT changed FROM every"); };
        update(id, read(), R"({"day": "1969-12-31", "bytes": "\\x00ff"})");
        const page::Value before = one("SELECT every::text FROM every");
        equal(one("SELECT day || ' ' || encode(bytes, 'hex') FROM every"), "1969-12-31 00ff");
        refused("22P02", [&] { update(id, read(), R"({"small": "x"})"); });
        refused("22003", [&] { update(id, read(), R"({"small": 99999999999999999999})"); });
        refused("22P02", [&] { update(id, read(), "no JSON"); });
        refused("22P02", [&] { update("no uuid", read(), "{}"); });
        refused("22007", [&] { update(id, NAN, "{}"); });
        refused("22004", [&] { update(id, static_cast<const char *>(nullptr), "{}"); });
        refused("22P02", [&] {
            transaction(connection(), [](pqxx::work &work) { return work.exec_params("SELECT interlock.versioned_update('note', 1, $1, '{}')", NAN); });
        });
        equal(one("SELECT every::text FROM every"), before);
    });
}

int lost(const std::string &compares)
{
    const std::string id = std::to_string(note("hot"));
    const int acknowledged = page::race(
        5, [&] { one("UPDATE note SET hits = hits + 1 WHERE id = $1 AND interlock.any_version(version)", {id}); },
        [&] {
            auto own = std::make_shared<pqxx::connection>();
            return [&, own](const std::function<void()> &meet) {
                pqxx::nontransaction work(*own);
                pqxx::row row = work.exec_params1("SELECT hits, version FROM note WHERE id = $1", id);
                meet();
                return work.exec_params("UPDATE note SET hits = $1 WHERE id = $2 AND " + compares, row[0].as<int>() + 1, id, row[1].c_str())
                           .affected_rows() == 1;
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
        const int id = note("hot");
        std::vector<std::thread> threads;
        for (int n = 0; n < 8; n++)
            threads.emplace_back([id] {
                pqxx::connection own;
                for (int hit = 0; hit < 5; hit++) add_hit(own, id);
            });
        for (std::thread &thread : threads) thread.join();
        equal(one("SELECT hits FROM note WHERE id = $1", {std::to_string(id)}), "40");
    });
}

void leases()
{
    check("a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one", [] {
        auto free = [] { return one("SELECT interlock.try_lock_key('one')"); };
        equal(one_at_a_time(connection(), "one", [&](pqxx::work &) { return free(); }), "f");
        equal(free(), "t");
        pqxx::nontransaction(connection()).exec("SELECT interlock.lock_key('one')");
        equal(free(), "t");
    });
    check("work is done by the holder, and not beside it", [] {
        note("");
        equal(tidy_notes(connection(), ""), true);
        equal(one("SELECT count(*) FROM note WHERE body = ''"), "0");
        Lease lease("", "tidy notes", std::chrono::seconds(300));
        equal(tidy_notes(connection(), ""), false);
    });
    check("it is given back, and renewed at half of its ttl", [] {
        equal(one("SELECT 'held' FROM interlock.lease_of('tidy notes')"), "null");
        Lease lease("", "short", std::chrono::seconds(20));
        auto ends = [] { return std::stod(*one("SELECT extract(epoch FROM expires_at) FROM interlock.lease_of('short')")); };
        const double first = ends();
        page::eventually([&] { return ends() > first; });
    });
    check("when it is broken, the work is stopped and cannot commit", [] {
        Lease lease("", "broken", std::chrono::seconds(2));
        one("SELECT interlock.break_lease('broken', 'test')");
        equal(page::error<LostError>([&] {
                  transaction(connection(), [&](pqxx::work &work) {
                      lease.check(work);
                      return 0;
                  });
              }).sqlstate,
            "IL006");
        page::eventually([&] { return lease.lost(); });
    });
}

void payments()
{
    check("an endpoint charges once: 201, the same again, 422, 400", [] {
        const Answer first = pay(connection(), "anna", "k-1", R"({"amount": 9.90})");
        equal(first.status, 201);
        equal(pay(connection(), "anna", "k-1", R"({"amount": 9.9})").body, first.body);
        equal(pay(connection(), "anna", "k-1", R"({"amount": 8})").status, 422);
        for (const auto &none : {std::optional<std::string>(), std::optional<std::string>("")})
            equal(pay(connection(), "anna", none, "{}").status, 400);
        equal(one("SELECT count(*) FROM payment"), "1");
    });
    check("an error leaves the key free, and eight requests at once are one payment", [] {
        refused("23502", [] { pay(connection(), "anna", "k-2", "{}"); });
        std::vector<std::thread> threads;
        std::atomic<int> answered = 0;
        for (int n = 0; n < 8; n++)
            threads.emplace_back([&] {
                pqxx::connection own;
                const int status = pay(own, "anna", "k-2", R"({"amount": 3})").status;
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
    const int id = note("old");
    const long long read = version(id);
    for (const std::string &call : std::vector<std::string>{
             "versioned_update('note', " + std::to_string(id) + ", " + std::to_string(read) + ", '{\"body\": \"x\"}')", "lock_key('k')",
             "try_transition('task', 1, 'new', 'done')", "idempotency_claim('lost', 'k')", "run_once('lost', 'r', 'charge(jsonb)', '{}')"})
        check("a connection that breaks after " + call.substr(0, call.find('(')) + ", before the commit, leaves nothing; the next one does it", [&] {
            const std::string state = "SELECT concat_ws(' ', (SELECT sum(version) FROM note), (SELECT status FROM task),"
                                      " (SELECT count(*) FROM interlock.idempotency WHERE scope = 'lost'), (SELECT count(*) FROM payment))";
            const page::Value before = one(state);
            pqxx::connection own;
            page::error<pqxx::broken_connection>([&] {
                transaction(own, [&](pqxx::work &work) {
                    work.exec("SELECT * FROM interlock." + call);
                    one("SELECT pg_terminate_backend($1, 60000)", {work.exec1("SELECT pg_backend_pid()")[0].c_str()});
                    return work.exec("SELECT 1");
                });
            });
            equal(one(state), before);
            transaction(connection(), [&](pqxx::work &work) { return work.exec("SELECT * FROM interlock." + call); });
        });
    check("what is repeated after its commit was not answered is a conflict, or the same answer", [&] {
        page::error<StaleError>([&] { save_note(connection(), id, read, "{}"); });
        equal(one("SELECT outcome FROM interlock.run_once('lost', 'r', 'charge(jsonb)', '{}')"), "replay");
    });
}

} // namespace

int main()
{
    pqxx::connection first, second;
    raw = query_of(first);
    page::load("libpqxx", raw);
    pqxx::connection third;
    connected = &third;
    saves();
    parameters();
    races();
    leases();
    payments();
    breaks();
    page::lose_all(raw, [] {
        auto own = std::make_shared<pqxx::connection>();
        return [own](const std::string &sql, const page::Row &values) { return query_of(*own)(sql, values); };
    });
    page::call_all("libpqxx", query_of(second), raw);
    return page::done();
}
