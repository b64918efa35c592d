// The write log: a line for each statement that wrote otherwise than it said, or unrecorded. Tables
// interlock.write_log; views operation_log, skipped_writes and forced_writes.
//
// The rows of a statement are counted in memory, and the line is written when nothing can be added
// any more: before the savepoint or transaction commits, when somebody reads a view, or when too
// many lines wait. It is written in the subtransaction that the rows were written in, so both are
// kept or rolled back together.
#pragma once

#include "relation.h"

namespace interlock {

enum class WriteDecision : uint8 { kSuppressed, kSkipped, kMerged, kForced };

// What belongs into one line.
struct WriteStatement {
    WriteDecision decision;
    const char* operation; // "insert", "update", "delete" or "truncate"; a constant
    Oid root;              // the table, or the partitioned one that it is a part of
    CommandId command;
};

// A line under construction, in memory of its own.
struct WriteLine {
    MemoryContext memory;
    WriteStatement statement;
    SubTransactionId subtransaction;
    TimestampTz started;
    char* table;
    char* written_by;
    char* writer;
    int64 count;
    ArrayBuildState* columns; // names
    Oid leaf;                 // the table or partition whose columns `seen` are,
    Bitmapset* seen;          // added already
    // What the caller fills, 0 or null where there is nothing to tell. Values are jsonb.
    Datum key;    // of the first row; told if it is the only one
    char* owner;  // of the columns
    char* reason; // why
    Datum stored; // of the first row: what stayed, or was there before,
    Datum given;  // and what the writer gave
};

// Counts `rows` rows into the line of the statement. Good until the next call. The caller fills a
// new one.
WriteLine* count_writes(const WriteStatement& statement, int64 rows, bool* is_new);

// Adds the names of columns of the relation to the line.
void add_columns(WriteLine* line, Relation rel, const Bitmapset* columns);

// Writes the line now; it is gone then.
void write_line(WriteLine* line);

// The command that wrote or deleted the row an AFTER trigger is called for. For a BEFORE trigger
// the present one, which is the same for all rows of a statement unless a trigger writes in
// between.
CommandId writing_command(const TriggerData* trigger);

// --- Trimming ------------------------------------------------------------------------------------

void define_write_log_settings();

// When a line that is written now is to be deleted, DT_NOEND if never.
TimestampTz write_log_expiry(TimestampTz written);

// Deletes old lines, looking at the oldest max_rows. Returns whether there may be more, and when
// the next one is old, DT_NOEND if none is left.
bool trim_write_log(int32 max_rows, TimestampTz* next);

} // namespace interlock
