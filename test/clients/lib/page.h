// Lines of TAP for what the code of a page of docs/clients does, calls of every function, and eight workers on one row.
// The blocks of C and C++ of the page are in blocks.h.

#ifndef PAGE_H
#define PAGE_H

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace page {

using Value = std::optional<std::string>;
using Row = std::vector<Value>;
// Runs SQL with parameters, or without any several statements, and returns its rows. Throws what the library throws.
using Query = std::function<std::vector<Row>(const std::string &sql, const Row &values)>;

inline constexpr int workers = 8;
inline int tests = 0;
inline bool failed = false;

inline std::string read_file(const std::string &name)
{
    std::ifstream file(name);
    if (!file) throw std::runtime_error("could not read " + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

inline void check(const std::string &name, const std::function<void()> &body)
{
    tests++;
    try {
        body();
        std::cout << "ok " << tests << " - " << name << std::endl;
    } catch (const std::exception &error) {
        failed = true;
        std::cout << "not ok " << tests << " - " << name << "\n# "
                  << std::regex_replace(error.what(), std::regex("\n"), "\n# ") << std::endl;
    }
}

inline int done()
{
    std::cout << "1.." << tests << std::endl;
    return failed ? 1 : 0;
}

inline std::string text(const std::string &value) { return value; }
inline std::string text(const char *value) { return value ? value : "null"; }
inline std::string text(char *value) { return text(static_cast<const char *>(value)); }
inline std::string text(const Value &value) { return value ? *value : "null"; }
inline std::string text(const Row &row)
{
    std::string all;
    for (const Value &value : row) all += text(value) + "|";
    return all;
}
template <typename Number> std::string text(Number number) { return std::to_string(number); }

template <typename Found, typename Wanted> void equal(const Found &found, const Wanted &wanted)
{
    if (text(found) != text(wanted)) throw std::runtime_error("found " + text(found) + ", wanted " + text(wanted));
}

// The error that the body throws, which is of that class.
template <typename Error> Error error(const std::function<void()> &body)
{
    try {
        body();
    } catch (const Error &error) {
        return error;
    }
    throw std::runtime_error("no error");
}

// Until it is true; for as long as the whole suite may take.
inline void eventually(const std::function<bool()> &condition)
{
    using namespace std::chrono;
    const auto end = steady_clock::now() + seconds(180);
    while (!condition()) {
        if (steady_clock::now() > end) throw std::runtime_error("it does not come true");
        std::this_thread::sleep_for(milliseconds(20));
    }
}

// Eight workers and a raw writer add one to the same number. An attempt reads, calls what it is given, writes, and returns
// whether the write was acknowledged; worker() makes the attempt of a thread. In each round all of them have read before
// the raw writer writes, and write after it. Returns how many acknowledged additions there were.
using Attempt = std::function<bool(const std::function<void()> &meet)>;
inline int race(int rounds, const std::function<void()> &raw, const std::function<Attempt()> &worker)
{
    std::barrier all(workers + 1);
    std::vector<std::thread> threads;
    for (int n = 0; n < workers; n++)
        threads.emplace_back([&] {
            try {
                Attempt attempt = worker();
                for (int round = 0; round < rounds; round++) {
                    all.arrive_and_wait(); // all of them begin with the same row
                    std::function<void()> meet = [&] {
                        all.arrive_and_wait();
                        all.arrive_and_wait();
                    };
                    while (!attempt(meet)) meet = [] {};
                }
            } catch (const std::exception &error) {
                std::cout << "Bail out! " << error.what() << std::endl;
                std::_Exit(1);
            }
        });
    for (int round = 0; round < rounds; round++) {
        all.arrive_and_wait();
        all.arrive_and_wait();
        raw();
        all.arrive_and_wait();
        raw();
    }
    for (std::thread &thread : threads) thread.join();
    return rounds * (workers + 2);
}

// Runs the blocks of SQL of the page. All that connects from now on is the role app, which has on the tables of the page what
// the page grants. On tables of tests it may do what plain SQL does.
inline void load(const std::string &name, const Query &query)
{
    std::istringstream lines(read_file(std::string(std::getenv("ROOT")) + "/docs/clients/" + name + ".md"));
    std::string line, sql;
    bool inside = false;
    while (std::getline(lines, line)) {
        if (inside && line == "```") query(std::exchange(sql, ""), {});
        if (line.starts_with("```")) inside = line == "```sql";
        else if (inside) sql += line + "\n";
    }
    query("ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app;"
          "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app", {});
    setenv("PGUSER", "app", 1);
}

// --- Every function

inline void call_one(const Row &call, const Query &calls, const Query &query)
{
    const Row id{call[0], call[1]};
    const std::string of = " WHERE n = $1 AND instead = $2 ORDER BY i";
    const bool in_transaction = call[4] == "t";
    if (in_transaction) query("BEGIN", {});
    try {
        for (const Row &before : calls("SELECT sql FROM call_before" + of, id)) query(*before[0], {});
        Row values;
        for (const Row &argument : calls("SELECT kind, value, '{' || array_to_string(elements, ',') || '}' FROM call_argument" + of, id)) {
            const std::string &kind = *argument[0];
            if (kind == "null") values.push_back(std::nullopt);
            else if (kind == "array") values.push_back(argument[2]);
            else if (kind == "$query") values.push_back(query(*argument[1], {})[0][0]);
            else if (kind == "$bytes") values.push_back("\\x" + *argument[1]);
            else values.push_back(argument[1]);
        }
        const std::vector<Row> rows = query(*call[5], values);
        if (call[6] == "t") {
            Row wanted;
            for (const Row &answer : calls("SELECT CASE value WHEN 'true' THEN 't' WHEN 'false' THEN 'f' ELSE value END FROM call_answer" + of, id))
                wanted.push_back(answer[0]);
            Row found = rows.at(0);
            for (Value &value : found) // of a column of a text type, too
                if (value == "true" || value == "false") value = value->substr(0, 1);
            equal(found, wanted);
        }
    } catch (...) {
        if (in_transaction) query("ROLLBACK", {});
        throw;
    }
    if (in_transaction) query("ROLLBACK", {});
}

// Every call of calls.json, of which calls.sql makes tables on another connection.
inline void call_all(const std::string &driver, const Query &calls, const Query &query)
{
    calls(read_file("lib/calls.sql"), {});
    calls("INSERT INTO calls_file VALUES ($1, $2::jsonb)", {driver, read_file("lib/calls.json")});
    for (const Row &setup : calls("SELECT sql FROM call_setup ORDER BY i", {})) query(*setup[0], {});
    for (const Row &call : calls("SELECT n, instead, name, fails, in_transaction, sql, answer IS NOT NULL FROM call ORDER BY n, instead DESC", {}))
        check(*call[2], [&] {
            if (call[3] == "t") error<std::exception>([&] { call_one(call, calls, query); });
            else call_one(call, calls, query);
        });
}

// --- Connections that are lost in the middle of a call

// Every call of lost.json (lib/client.mjs says what is in it). connect() makes a connection of the application.
inline void lose_all(const Query &owner, const std::function<Query()> &connect)
{
    const Value file = read_file("lib/lost.json");
    for (const Row &setup : owner("SELECT jsonb_array_elements_text($1::jsonb->'setup')", {file})) owner(*setup[0], {});
    const std::string state = *owner("SELECT $1::jsonb->>'state'", {file})[0][0];
    for (const Row &call : owner("SELECT c->>'name', c->>'sql', c->>'first', c->>'again' FROM jsonb_array_elements($1::jsonb->'calls') c", {file}))
        check(*call[0] + " that is lost in the middle changes nothing and can be repeated, also after an unknown outcome", [&] {
            const Value before = owner(state, {})[0][0];
            error<std::exception>([&] {
                connect()("WITH done AS MATERIALIZED (" + *call[1] + ") SELECT (SELECT count(done) FROM done), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)::text", {});
            });
            equal(owner(state, {})[0][0], before);
            equal(connect()(*call[1], {})[0][0], call[2]);
            if (call[3]) equal(connect()(*call[1], {})[0][0], call[3]);
            else error<std::exception>([&] { connect()(*call[1], {}); });
        });
    for (const Row &teardown : owner("SELECT jsonb_array_elements_text($1::jsonb->'teardown')", {file})) owner(*teardown[0], {});
}

} // namespace page

#endif
