// How often writers collide: counters in shared memory, a line for each table and mechanism and for
// each key class, a bounded number of lines, and one more for all that found none.
//
// A count is one atomic addition to a line that the session has found before; no lock is shared by
// those who count. Shared memory is not transactional: what is rolled back stays counted, as the
// collision has happened. A counter stays at kCounterEnd. Nothing is counted without preload, or
// with interlock.count_contention = off. Nothing here raises an error.
//
// What the counters mean is in docs/reference/views.md. A verb counts its call with its outcome; an
// error on the way, and a statement that is no verb, are counted where they are judged.
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

// Those up to kEscrow are of tables, the others of key classes.
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

// What a line is of. Compared as bytes: what is not used is zero, and there is no padding.
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
    pg_atomic_uint64 serial; // of what it counts now; zero: nothing
    pg_atomic_uint64 counters[kCounters];
    TimestampTz since;
    LineName name;
};

// A line as a session has found it. It counts nothing once the line counts something else.
struct LineRef {
    CountedLine* line;
    uint64 serial;
};

// Whether this session counts.
bool counts_contention();

// The line of a table of this database; `known` keeps it for the next time.
LineRef line_of_table(Oid table, CountedKind kind, LineRef* known);

// The line of the class of a key, which the text before its first ':' or '/' names, and of the
// role. A key without either is a class, or of the class '' if it has a digit.
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

// Counts a wait that began at `start` and has ended. The code of the error that ended it, or zero:
// 55P03 is a timeout; a deadlock or a serialization failure is a conflict.
void count_wait(LineRef ref, instr_time start, int error);

// What count_wait() and its like are asked to do when an error leaves body().
struct ErrorCounts {
    LineRef ref;
    instr_time start;
    bool is_wait; // else a call
    ErrorContextCallback context;
};
void push_error_counts(ErrorCounts* counts, LineRef ref, bool is_wait);
inline void pop_error_counts(const ErrorCounts& counts) {
    error_context_stack = counts.context.previous;
}

// Runs body(), which waits.
template <typename Body>
auto count_waiting(LineRef ref, Body&& body) {
    ErrorCounts counts;
    push_error_counts(&counts, ref, true);
    auto result = body();
    pop_error_counts(counts);
    count_wait(ref, counts.start, 0);
    return result;
}

// Runs body(), a statement of a verb: counts a call that ended with one of these errors.
template <typename Body>
void count_errors(LineRef ref, Body&& body) {
    ErrorCounts counts;
    push_error_counts(&counts, ref, false);
    body();
    pop_error_counts(counts);
}

} // namespace interlock::inline contention
