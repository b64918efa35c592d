// Versioned rows: every row has a token that each update moves. A writer that has read an older
// version gets a conflict instead of overwriting the row (optimistic locking).
//
// The token is a counter (integer or bigint) or a timestamp. The trigger moves it for every writer.
// The functions of version/write.cpp update the row only if it still has the token that the caller
// read.
//
// Isolation: under READ COMMITTED the loser of a race waits for the winner. Then it gets a
// conflict, or succeeds if the winner has rolled back. Under REPEATABLE READ and SERIALIZABLE a row
// that changed after the snapshot raises 40001, as for a plain UPDATE.
#pragma once

#include "statement/blind_updates.h"
#include "table/key.h"
#include "table/relation.h"
#include "table/trigger.h"

namespace interlock::inline execution {
class Expressions;
struct Expression;
} // namespace interlock::inline execution

namespace interlock::version {

enum class TokenKind : uint8 { kInteger, kBigint, kTimestamp, kTimestamptz };

// The arguments of the trigger: the column, the treatment of blind updates and of updates that
// change nothing, then the ignored columns.
struct VersionSettings {
    const char* column;
    BlindUpdates blind_updates;
    bool keeps_unchanged; // the version of a row whose values an update leaves as they are
    NameList ignored;
};

// Returns false if enable_versioning does not write such arguments.
bool read_settings(const Trigger* trigger, VersionSettings* settings);
List* trigger_arguments(const VersionSettings& settings);
// Reads the value of the argument `unchanged`.
bool parse_unchanged(const char* name, bool* keeps);
extern const Mechanism kVersionMechanism;

struct Versioning : OwnTrigger {
    NameData name;
    AttrNumber column; // InvalidAttrNumber: the column is gone or has another type
    TokenKind kind;
    int32 typmod;
    bool nullable; // a null token counts as 0, or as -infinity
    bool has_ignored;
    Bitmapset* ignored; // attribute numbers
    BlindUpdates blind_updates;
    bool keeps_unchanged;
    mutable Oid start; // the start that was found last (version/start.h)
};

// The facet. Null if versioning is not enabled.
extern int versioning_facet;
inline const Versioning* versioning_of(const TableInfo* info) {
    return facet_of<const Versioning>(info, versioning_facet);
}

inline bool is_counter(TokenKind kind) {
    return kind == TokenKind::kInteger || kind == TokenKind::kBigint;
}

bool token_kind_of(Oid type, TokenKind* kind);

// The hint for a time as the version of a reference table of Citus (table/citus.h).
constexpr const char* kReferenceHint =
    "Each copy of a row would get a time of its own. Use a column of type integer or bigint.";

// The configuration for the trigger. Raises 55000 if the column is missing.
const Versioning* usable_versioning(Relation rel, const TableInfo* info);

// The table's versioning. Raises 55000 if it is not enabled, if its column is missing, or if its
// trigger does not fire in this session. Without the trigger a conditional update would succeed and
// the token would never move.
const Versioning* require_versioning(Relation rel, const TableInfo* info);

// How many versioned rows were updated in this session. The trigger counts them. If the count rises
// by more than one during the write of one row, a trigger has updated other rows too, or the same
// row again.
extern uint64 versioned_updates;

// Tokens of every kind are passed as int64: the counter, or microseconds as the server stores a
// timestamp.
int64 token_of_datum(TokenKind kind, Datum value, bool is_null);
char* token_to_text(TokenKind kind, int64 token);
char* token_to_json(TokenKind kind, int64 token);

// Fills the two result columns (version bigint, version_time timestamptz). One of them is null.
void set_version_columns(const Versioning* versioning, int64 token, Datum* values, bool* nulls);
Oid token_type(TokenKind kind);

// Counts a call of a function on one row, and whether it was a conflict (contention/count.h).
void count_call(const TableInfo* info, bool is_conflict);

// version = expected, as a condition of a write.
const Expression* has_version(Expressions* terms, const Versioning* versioning, int64 expected);

} // namespace interlock::version
