// The write log: lines about writes that were not stored as given, or not recorded. Table
// interlock.write_log; views operation_log, skipped_writes and forced_writes.
//
// Rows that belong into one line are counted in memory, and the line is written when nothing can be
// added any more: before the savepoint or transaction commits, or when too many lines wait. It is
// written in the subtransaction that the rows were written in, so both are committed or rolled back
// together.
#pragma once

#include "table/relation.h"

namespace interlock::inline sweeper {
struct SweepTask; // sweeper/task.h
} // namespace interlock::inline sweeper

namespace interlock::ownership {

enum class WriteDecision : uint8 { kSuppressed, kSkipped, kMerged, kForced, kBlind };

// The key of a line, together with the writer.
struct WriteGroup {
    WriteDecision decision;
    const char* operation; // "insert", "update", "delete" or "truncate"; a constant
    Oid root;              // the table, or the partitioned one that it is a part of
    CommandId command;     // InvalidCommandId: all statements of the subtransaction
    const char* owner;     // of the columns, or null
};

// What a line shows of its first row. Values are jsonb, 0 where there is none.
struct WriteSample {
    Datum key; // shown if it is the only row
    Datum stored;
    Datum given;
    const char* reason;
};

// The columns of a table or partition whose names are in the line.
struct SeenColumns {
    Oid relid;
    Bitmapset* columns;
    SeenColumns* next;
};

// A line under construction, in memory of its own.
struct WriteLine {
    MemoryContext memory;
    WriteGroup group;
    WriteSample sample;
    SubTransactionId subtransaction;
    int depth; // of triggers in triggers
    TimestampTz started;
    char* table;
    char* table_owner;
    char* written_by;
    const char* writer; // null: none
    int64 count;
    ArrayBuildState* columns; // names
    SeenColumns* seen;
};

// The line that rows of the group are counted into now, or null.
WriteLine* find_line(const WriteGroup& group);
WriteLine* new_line(const WriteGroup& group, const WriteSample& sample);

// Counts rows into their line; sample() is called for the first one. Valid until the next call.
template <typename Sample>
WriteLine* count_writes(const WriteGroup& group, int64 rows, Sample&& sample) {
    WriteLine* line = find_line(group);
    if (line == nullptr)
        line = new_line(group, sample()); // which may run other code, and write lines
    line->count += rows;
    return line;
}

// Adds the names of columns of the relation to the line.
void add_columns(WriteLine* line, Relation rel, const Bitmapset* columns);

// The columns of the relation that are in the line.
const Bitmapset* columns_seen(const WriteLine* line, Oid relid);

// Writes a line of one row at once.
void log_row(const WriteGroup& group, const WriteSample& sample, Relation rel,
             const Bitmapset* columns);

// The command that wrote or deleted the row an AFTER trigger is called for.
CommandId writing_command(const TriggerData* trigger);

// --- Trimming ------------------------------------------------------------------------------------

void define_write_log_settings();

// When a line that is written now is to be deleted, DT_NOEND if never.
TimestampTz write_log_expiry(TimestampTz written);

// The sweeper's task: deletes old lines.
extern const SweepTask kWriteLogSweep;

} // namespace interlock::ownership
