// The write log: lines about writes that were stored in another form than given, or that were not
// recorded. The table is interlock.write_log. The views are operation_log, skipped_writes and
// forced_writes.
//
// Rows that belong to one line are counted in memory. The line is written when no row can be added
// any more: before the savepoint or transaction commits, or when too many lines wait. It is written
// in the subtransaction in which the rows were written, so the line and the rows are committed or
// rolled back together.
#pragma once

#include "table/relation.h"

namespace interlock::inline sweeper {
struct SweepTask; // sweeper/task.h
} // namespace interlock::inline sweeper

namespace interlock::ownership {

enum class WriteDecision : uint8 { kSuppressed, kSkipped, kMerged, kForced, kBlind };

// Identifies a line, together with the writer.
struct WriteGroup {
    WriteDecision decision;
    const char* operation; // "insert", "update", "delete" or "truncate"; a constant
    Oid root;              // the table, or the partitioned table of a partition
    CommandId command;     // InvalidCommandId: all statements of the subtransaction
    const char* owner;     // owner of the columns, or null
};

// What a line shows of its first row. Values are jsonb, 0 where there is none.
struct WriteSample {
    Datum key; // only shown if the line has one row
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

// A line that is being built, in its own memory context.
struct WriteLine {
    MemoryContext memory;
    WriteGroup group;
    WriteSample sample;
    SubTransactionId subtransaction;
    int depth; // nesting depth of triggers
    TimestampTz started;
    char* table;
    char* table_owner;
    char* written_by;
    const char* writer; // null: none
    int64 count;
    ArrayBuildState* columns; // names of columns
    SeenColumns* seen;
};

// The line in which rows of the group are counted now. Null if there is none.
WriteLine* find_line(const WriteGroup& group);
WriteLine* new_line(const WriteGroup& group, const WriteSample& sample);

// Counts rows in their line. Calls sample() for the first row. The result is valid until the next
// call.
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

// The command that wrote or deleted the row for which an AFTER trigger is called.
CommandId writing_command(const TriggerData* trigger);

// --- Trimming ------------------------------------------------------------------------------------

void define_write_log_settings();

// When a line that is written now will be deleted. DT_NOEND: never.
TimestampTz write_log_expiry(TimestampTz written);

// The sweeper's task, which deletes old lines.
extern const SweepTask kWriteLogSweep;

} // namespace interlock::ownership
