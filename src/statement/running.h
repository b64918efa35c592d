// The statements that run in this session, one inside the other, and what they compare: for row
// triggers, which are not told by which statement they fire.
//
// The library plans nothing itself: it looks at each statement before the server plans it (mark.h),
// and notes which of those that write are running. So it knows what was planned after it was
// loaded. Only with shared_preload_libraries or session_preload_libraries is that everything.
#pragma once

#include "server/server.h"

namespace interlock::inline statement {

// From _PG_init, once.
void install_statement_hooks();

// Whether the library was loaded before the first statement of the session.
bool knows_all_statements();

// Raises 55000 with the line that preloads the library, unless it was loaded that early. `what`
// needs it: the subject of the message.
void require_all_statements(const char* what);

// A column and the statement that has fired a BEFORE ROW trigger for UPDATE or DELETE.
enum class Comparison : uint8 {
    kNoStatement, // none of SQL: a subscription applies a change, or it was running before the load
    kNotPlanned,  // planned before the library was loaded, or by another module
    kOwn,         // a statement of this library, or one of its writes without a statement
    kNone,        // it does not compare the column
    kAtAll,       // Compared::at_all, statement/compared.h
    kEqual,       // Compared::equal
};
Comparison comparison_of(const TriggerData* trigger, AttrNumber column);

// Whether the trigger is fired by a verb: by a statement of this library, or one of its writes
// without a statement.
bool is_fired_by_verb();

// Whether the row trigger that is being called was fired by a change that a subscription applies,
// and not by a statement of code that runs meanwhile.
bool applies_subscription();

// Whether the row, for which comparison_of() has been asked when it was updated, is now deleted by
// the same statement: it moves to another partition.
bool is_moved(const TriggerData* trigger);

// Whether the statement that has fired the trigger is the action of a foreign key. A statement of a
// trigger that the action has fired is none.
bool is_foreign_key_action();

// The number that the rows have as theirs which the running statement writes: a trigger may have
// run others since.
CommandId running_command();

// True once for each statement and table: for a warning that is not repeated for each row.
bool is_first_of_statement(Oid table);

// How many rows an INSERT of this library did not insert because of ON CONFLICT DO NOTHING; the
// server tells no other way whether a trigger was the reason. Set while that statement runs.
struct Skipped {
    bool is_known;
    uint64 rows;
};
extern Skipped* skipped_by_insert;

// Runs body(), which writes a row and fires its triggers without a statement.
void run_as_own_write(void (*body)(void* closure), void* closure);
template <typename Body>
void as_own_write(Body&& body) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Body>>);
    run_as_own_write(
        [](void* closure) { (*static_cast<std::remove_reference_t<Body>*>(closure))(); }, &body);
}

} // namespace interlock::inline statement
