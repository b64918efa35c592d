// Conditional writes of versioned rows, for version/write.cpp, version/merge.cpp, version/many.cpp
// and version/retry.cpp. version/call.h has what functions on one row share.
#pragma once

#include "execution/stored_row.h"
#include "version/version.h"

namespace interlock::inline execution {
struct OpenUpdates;
struct KeyedRow;
} // namespace interlock::inline execution

namespace interlock::version {

enum class Outcome { kUpdated, kUnchanged, kMerged, kDeleted, kConflict, kNotFound };

const char* outcome_name(Outcome outcome);

// One conditional write. The caller sets `expected`. The write sets `stored`: the new token after
// kUpdated, and the current token of the row after kUnchanged and kConflict. It also sets the key
// by which to name the row (table_key()).
struct Attempt {
    Outcome outcome;
    int64 stored;
    const Key* key;
};

// Updates the row if its token is `expected`. If `changes` is empty, the update only moves the
// token. In a table that keeps the versions of unchanged rows, a row whose values would stay the
// same is neither written nor locked: the outcome is kUnchanged.
// Consecutive updates of one table share `open`.
Attempt update_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected,
                          const Changes& changes, OpenUpdates* open = nullptr);
Attempt delete_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected);

// The version that a row has at the end of a write. An AFTER trigger of the write may have updated
// the row again. The class counts the versioned rows that were updated. If more rows were updated
// than `own_updates`, version() reads the row again.
class VersionAfterWrite {
public:
    // To be created before the write, which itself updates `own_updates` versioned rows.
    explicit VersionAfterWrite(int own_updates);
    // To be called after the write. `returned` is the version that the write has returned.
    int64 version(const KeyedRow& row, int64 returned) const;

private:
    uint64 expected_updates_;
};

// All columns of the row that the caller may see, and its token.
Bitmapset* columns_to_report(Relation rel, const Versioning* versioning);
int64 stored_token(const StoredRow& row, const Versioning* versioning);

// The merge of try_versioned_update. On a conflict it compares the changes with the row that the
// client read. kReport writes nothing, and the outcome is kConflict even if no column is in
// conflict.
enum class OnConflict : uint8 { kReport, kMerge };
struct Merge {
    Outcome outcome; // kMerged, kConflict or kNotFound
    int64 stored;
    StoredRow row;        // the merged row, or the row in conflict
    Bitmapset* conflicts; // columns that both sides changed
};
Merge merge_changes(Relation rel, const TableInfo* info, const Key& key, const Changes& changes,
                    Jsonb* base, OnConflict on_conflict);

} // namespace interlock::version
