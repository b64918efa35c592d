// The errors of versions: IL001 for a conflict, IL011 for a blind write.
#pragma once

#include "version/version.h"

namespace interlock::version {

// Raises IL001 with the key, the expected and the stored token. `way_back` is the hint. Null means
// the usual hint.
[[noreturn]] void raise_version_conflict(Relation rel, const TableInfo* info, const Key& key,
                                         int64 expected, int64 stored,
                                         const char* way_back = nullptr);

// Raises IL001 for a function that was to insert a row, and has found one.
[[noreturn]] void raise_row_exists(Relation rel, const TableInfo* info, const Key& key,
                                   int64 stored);

// Raises IL001 for a plain UPDATE that sets the version. `given` is that value as text, as the
// writer or another trigger has set it. It shows the columns that the current user could SELECT.
[[noreturn]] void raise_version_set(Relation rel, const TableInfo* info, HeapTuple row,
                                    int64 stored, const char* given);

// A statement that writes a row without comparing its version.
struct BlindWrite {
    Relation rel;
    const TableInfo* info;
    HeapTuple row; // before the write
    bool deletes;
    const char*
        shared_column; // that it changes (share_columns), if only this is a reason; else null
};

// Raises IL011 at `level`, ERROR or WARNING. It shows the columns that the current user could
// SELECT.
void report_blind_write(const BlindWrite& write, int level);

} // namespace interlock::version
