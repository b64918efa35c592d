// The statements that run in this session, one inside the other, and what they compare. Row
// triggers need it, because the server does not tell them which statement fires them.
//
// The library looks at each statement before the server plans it (mark.h), and notes which writing
// statements are running. So it knows the statements that were planned after it was loaded. These
// are all statements only with shared_preload_libraries or session_preload_libraries.
#pragma once

#include "server/server.h"

namespace interlock::inline statement {

// Called once, from _PG_init.
void install_statement_hooks();

// Whether the library was loaded before the first statement of the session.
bool knows_all_statements();

// Raises 55000, with the line that preloads the library, unless the library was loaded that early.
// `what` is the subject of the message.
void require_all_statements(const char* what);

// What the statement that fired a BEFORE ROW trigger for UPDATE or DELETE does with a column.
enum class Comparison : uint8 {
    kNoStatement, // no SQL: a subscription applies a change, or it was running before the load
    kNotPlanned,  // planned before the library was loaded, or by another module
    kOwn,         // a statement of this library, or one of its writes without a statement
    kNone,        // does not compare the column
    kAtAll,       // Compared::at_all, statement/compared.h
    kEqual,       // Compared::equal
};
Comparison comparison_of(const TriggerData* trigger, AttrNumber column);

// Whether a function of this library fires the trigger: by one of its statements, or by a write
// without a statement.
bool is_fired_by_function();

// Whether a change that a subscription applies has fired the row trigger. False if it was fired by
// a statement of code that runs meanwhile.
bool applies_subscription();

// Whether the row is deleted by the same statement that has updated it, because it moves to another
// partition. comparison_of() must have been called for the update.
bool is_moved(const TriggerData* trigger);

// Whether the statement that fired the trigger is the action of a foreign key. A statement in a
// trigger that the action has fired is not.
bool is_foreign_key_action();

// The command number of the rows that the running statement writes. A trigger may have run other
// commands since.
CommandId running_command();

// Returns true once for each statement and table, for a warning that is not repeated for each row.
bool is_first_of_statement(Oid table);

// How many rows an INSERT of this library did not insert because of ON CONFLICT DO NOTHING. The
// server does not say otherwise whether a trigger was the reason. It is set while that statement
// runs.
struct Skipped {
    bool is_known;
    uint64 rows;
};
extern Skipped* skipped_by_insert;

// Runs body(), which writes a row without a statement and fires its triggers.
void run_as_own_write(void (*body)(void* closure), void* closure);
template <typename Body>
void as_own_write(Body&& body) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Body>>);
    run_as_own_write(
        [](void* closure) { (*static_cast<std::remove_reference_t<Body>*>(closure))(); }, &body);
}

} // namespace interlock::inline statement
