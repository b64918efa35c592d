// Counts how often writers collide. The counters are in shared memory: a line for each table and
// mechanism, and a line for each class of keys. Their number is limited. One more line counts for
// everything that found no free line.
//
// To count is one atomic addition to a line that the session has found before. Sessions that count
// share no lock. Shared memory is not transactional: a rollback does not undo a count, because the
// collision has happened. A counter stops at kCounterEnd. Nothing is counted without preload, or
// with interlock.count_contention = off. Nothing here raises an error.
//
// docs/reference/views.md says what the counters mean. An SQL function counts its call together
// with the outcome. An error that ends the call, and a plain statement, are counted by the code
// that checks the row.
#pragma once

#include "server/server.h"

namespace interlock::inline contention {

enum class Counter : uint8 {
    kCalls,
    kConflicts,
    kRefusals,
    kBlindUpdates,
    kWaits,
    kWaitTime, // microseconds
    kTimeouts,
    kExpiries,
    kTakeovers,
    kReplays,
    kMismatches,
    kRetries,
    kRenewals,
    kLateRenewals,
};
constexpr int kCounters = 14;
constexpr uint64 kCounterEnd = PG_INT64_MAX;

// The kinds up to kEscrow are for tables, the others for classes of keys.
enum class CountedKind : uint8 {
    kNone,
    kVersioning,
    kTransitions,
    kMarker,
    kOwnership,
    kRequireLease,
    kSelectForUpdate,
    kEscrow,
    kLease,
    kKey,
    kApplock,
    kIdempotency,
};
constexpr int kTableKinds = 8;
constexpr int kCountedKinds = 12;

// What a line counts. Names are compared as bytes: unused bytes are zero, and there is no padding.
constexpr int kMostClassBytes = 63;
struct LineName {
    Oid database;
    Oid object; // the table, or the role that uses the keys
    CountedKind kind;
    uint8 length;
    char key_class[kMostClassBytes + 3];
};
static_assert(std::has_unique_object_representations_v<LineName>);

struct CountedLine {
    pg_atomic_uint64 serial; // of what the line counts now; zero: nothing
    pg_atomic_uint64 counters[kCounters];
    TimestampTz since;
    LineName name;
};

// A line that a session has found. If the line is reused for something else, the reference counts
// nothing.
struct LineRef {
    CountedLine* line;
    uint64 serial;
};

// Whether this session counts.
bool counts_contention();

// The line of a table of this database. `known` keeps the reference for the next call.
LineRef line_of_table(Oid table, CountedKind kind, LineRef* known);

// The line for the role and the class of a key. The class is the text before the first ':' or '/'.
// A key without either is its own class, or belongs to the class '' if it has a digit.
LineRef line_of_key(CountedKind kind, std::string_view key, Oid role, Oid database);
LineRef line_of_key(CountedKind kind, std::string_view key);

// The line of an idempotency scope.
LineRef line_of_scope(std::string_view scope);

inline bool is_right(LineRef ref) {
    return ref.line != nullptr && pg_atomic_read_u64(&ref.line->serial) == ref.serial;
}

inline void count(LineRef ref, Counter counter, uint64 amount = 1) {
    if (ref.line == nullptr || !is_right(ref))
        return;
    pg_atomic_uint64* word = &ref.line->counters[static_cast<int>(counter)];
    uint64 before = pg_atomic_fetch_add_u64(word, amount);
    if (unlikely(before > kCounterEnd - amount))
        pg_atomic_write_u64(word, kCounterEnd);
}

// --- Waits ---------------------------------------------------------------------------------------

// Counts a wait that began at `start` and has ended. `error` is the code of the error that ended
// it, or zero. 55P03 counts as a timeout. A deadlock and a serialization failure count as a
// conflict.
void count_wait(LineRef ref, instr_time start, int error);

// What is counted if an error leaves body().
struct ErrorCounts {
    LineRef ref;
    instr_time start;
    bool is_wait; // otherwise a call
    ErrorContextCallback context;
};
void push_error_counts(ErrorCounts* counts, LineRef ref, bool is_wait);
inline void pop_error_counts(const ErrorCounts& counts) {
    error_context_stack = counts.context.previous;
}

// Runs body(), which waits, and counts the wait.
template <typename Body>
auto count_waiting(LineRef ref, Body&& body) {
    ErrorCounts counts;
    push_error_counts(&counts, ref, true);
    auto result = body();
    pop_error_counts(counts);
    count_wait(ref, counts.start, 0);
    return result;
}

// Runs body(), a statement of an SQL function. If body() raises a lock timeout, a deadlock or a
// serialization failure, counts a call and the error.
template <typename Body>
void count_errors(LineRef ref, Body&& body) {
    ErrorCounts counts;
    push_error_counts(&counts, ref, false);
    body();
    pop_error_counts(counts);
}

} // namespace interlock::inline contention
