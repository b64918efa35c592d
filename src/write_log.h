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

// A line under construction.
struct WriteLine {
    WriteStatement statement;
    SubTransactionId subtransaction;
    int64 count;
    Oid leaf;           // whose columns `seen` has
    Bitmapset* seen;    // what has been added of them
    ArrayBuildState* columns;
    Datum key;    // jsonb, of the only row; 0: several, or unknown
    char* owner;  // of the columns
    char* reason;
    Datum stored; // jsonb, samples of the first row: what stayed or was there before,
    Datum given;  // and what the writer gave
    MemoryContext memory;
};

// Counts `rows` rows into the line of the statement. The caller fills a new line (is_new), each
// pointer in its memory.
WriteLine* count_writes(const WriteStatement& statement, int64 rows, bool* is_new);

// Adds the names of columns of the relation to the line.
void add_columns(WriteLine* line, Relation rel, const Bitmapset* columns);

// Writes the line now.
void write_line(WriteLine* line);

// For a row trigger: the command that wrote or deleted the row, and an estimate before the write.
CommandId writing_command(const TriggerData* trigger);

} // namespace interlock
