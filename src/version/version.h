// Versioned rows: a token in every row that each update moves, so that a writer that read an older
// version gets a conflict instead of overwriting (optimistic locking).
//
// The token is a counter (integer or bigint) or a timestamp. The trigger moves it for every writer;
// the functions of version/write.cpp update on the condition that it is still the one the caller
// read.
//
// Isolation: under READ COMMITTED the loser of a race waits for the winner and then gets a
// conflict, or wins if the other rolled back. Under REPEATABLE READ and SERIALIZABLE a row that
// changed after the snapshot is 40001, as for a plain UPDATE.
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

// What the arguments of the trigger say: the column, what happens to blind updates, then the
// ignored columns.
struct VersionSettings {
    const char* column;
    BlindUpdates blind_updates;
    NameList ignored;
};

// False when they are not as enable_versioning writes them.
bool read_settings(const Trigger* trigger, VersionSettings* settings);
List* trigger_arguments(const VersionSettings& settings);
extern const Mechanism kVersionMechanism;

struct Versioning : OwnTrigger {
    NameData name;
    AttrNumber column; // InvalidAttrNumber when the column is gone or has another type
    TokenKind kind;
    int32 typmod;
    bool nullable; // a null token counts as 0, or as -infinity
    bool has_ignored;
    Bitmapset* ignored; // attribute numbers
    BlindUpdates blind_updates;
    mutable Oid start; // as it was found last (version/start.h)
};

// Null when versioning is not enabled.
extern int versioning_part;
inline const Versioning* versioning_of(const TableInfo* info) {
    return part_of<const Versioning>(info, versioning_part);
}

inline bool is_counter(TokenKind kind) {
    return kind == TokenKind::kInteger || kind == TokenKind::kBigint;
}

bool token_kind_of(Oid type, TokenKind* kind);

// The configuration as the trigger needs it; raises 55000 when the column is missing.
const Versioning* usable_versioning(Relation rel, const TableInfo* info);

// The table's versioning. Raises 55000 when it is not enabled, its column is missing, or its
// trigger does not fire in this session, since a conditional update would then succeed with a token
// that never moves.
const Versioning* require_versioning(Relation rel, const TableInfo* info);

// The updates of versioned rows in this session, counted by their trigger. More than one during a
// write of one row: a trigger has updated rows as well, perhaps the same one.
extern uint64 versioned_updates;

// Tokens of every kind travel as int64: the counter, or microseconds as the server stores them.
int64 token_of_datum(TokenKind kind, Datum value, bool is_null);
char* token_to_text(TokenKind kind, int64 token);
char* token_to_json(TokenKind kind, int64 token);

// Fills the pair of result columns (version bigint, version_time timestamptz): one of them is null.
void set_version_columns(const Versioning* versioning, int64 token, Datum* values, bool* nulls);
Oid token_type(TokenKind kind);

// Counts a call of a verb on one row, and whether it was a conflict (contention/count.h).
void count_call(const TableInfo* info, bool is_conflict);

// version = expected, as a condition of a write.
const Expression* has_version(Expressions* terms, const Versioning* versioning, int64 expected);

// Raises IL001 with the key, the expected and the stored token. `way_back` is the hint, null for
// the usual one.
[[noreturn]] void raise_version_conflict(Relation rel, const TableInfo* info, const Key& key,
                                         int64 expected, int64 stored,
                                         const char* way_back = nullptr);

} // namespace interlock::version
