// Conditional writes of versioned rows, for version/write.cpp, version/merge.cpp, version/many.cpp
// and version/retry.cpp; version/call.h has what functions on one row share.
#pragma once

#include "execution/stored_row.h"
#include "version/version.h"

namespace interlock::inline execution {
struct OpenUpdates;
struct KeyedRow;
} // namespace interlock::inline execution

namespace interlock::version {

enum class Outcome { kUpdated, kMerged, kDeleted, kConflict, kNotFound };

const char* outcome_name(Outcome outcome);

// One conditional write. `expected` goes in, `stored` comes out: the new token after kUpdated, the
// row's present token after kConflict, with what to call the row by (table_key()).
struct Attempt {
    Outcome outcome;
    int64 stored;
    const Key* key;
};

// Updates the row if its token is `expected`. Without changes it only moves the token. Consecutive
// updates of one table share `open`.
Attempt update_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected,
                          const Changes& changes, OpenUpdates* open = nullptr);
Attempt delete_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected);

// The version that a row has at the end of a write. An AFTER trigger of the write may have updated
// the row again: then more versioned rows were updated than by the write itself, and the row is
// read.
class VersionAfterWrite {
public:
    // Before the write, which updates that many versioned rows.
    explicit VersionAfterWrite(int own_updates);
    // After it; `returned` is the version that it has returned.
    int64 version(const KeyedRow& row, int64 returned) const;

private:
    uint64 expected_updates_;
};

// Everything the caller may see of the row, and its token.
Bitmapset* columns_to_report(Relation rel, const Versioning* versioning);
int64 stored_token(const StoredRow& row, const Versioning* versioning);

// The merge of try_versioned_update: on conflict, the changes against the row that the client read.
// With kReport nothing is written, and the outcome is kConflict also without such columns.
enum class OnConflict : uint8 { kReport, kMerge };
struct Merge {
    Outcome outcome; // kMerged, kConflict or kNotFound
    int64 stored;
    StoredRow row;        // the row after the merge, or the one in conflict
    Bitmapset* conflicts; // columns both sides changed
};
Merge merge_changes(Relation rel, const TableInfo* info, const Key& key, const Changes& changes,
                    Jsonb* base, OnConflict on_conflict);

} // namespace interlock::version
