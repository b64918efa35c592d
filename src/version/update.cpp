#include "version/update.h"

#include "execution/write.h"

namespace interlock::version {

constexpr int kAttempts = 3;

namespace {

// What an attempt of the caller needs to know of a write.
struct Written {
    bool done;
    bool was_suppressed;
    bool was_unchanged;
};

} // namespace

static Written run_update(const KeyedRow& row, int64 expected, const Changes& changes, int64* token,
                          OpenUpdates* open) {
    const Versioning* versioning = versioning_of(row.info);
    RowWrite write(row, versioning->keeps_unchanged ? PlanKind("version_update_changed")
                                                    : PlanKind("version_update"));
    write.skips_unchanged = versioning->keeps_unchanged;
    write.set(changes);
    if (changes.count == 0)
        write.keep(versioning->column);
    write.require(has_version(&write.terms, versioning, expected));
    write.returns(versioning->column);
    NullableDatum stored;
    VersionAfterWrite after(1);
    if (!write_row(write, &stored, open))
        return {false, write.was_suppressed, write.was_unchanged};
    *token = after.version(row, token_of_datum(versioning->kind, stored.value, stored.isnull));
    return {true, false, false};
}

static Written run_delete(const KeyedRow& row, int64 expected) {
    RowWrite write(row, PlanKind("version_delete"), RowAction::kDelete);
    write.require(has_version(&write.terms, versioning_of(row.info), expected));
    bool done = write_row(write);
    return {done, write.was_suppressed, false};
}

// The row after a write that found none to write, with the columns that are compared.
static StoredRow read_unwritten(Relation rel, const TableInfo* info, const Key& key,
                                const Bitmapset* compared) {
    Bitmapset* columns = bms_add_member(bms_copy(compared), versioning_of(info)->column);
    return read_row(rel, info, key, with_table_key(rel, info, key, columns));
}

static bool has_changes(const StoredRow& row, const TableInfo* info, const Changes& changes) {
    return has_values(info->columns, changes, [&](AttrNumber column) {
        NullableDatum stored;
        stored.value = stored_value(row, column, &stored.isnull);
        return stored;
    });
}

// `changes` is null for a delete.
template <typename Write>
static Attempt write_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected,
                                const Changes* changes, Write&& write) {
    const Versioning* versioning = versioning_of(info);
    for (int i = 0; i < kAttempts; i++) {
        Attempt attempt = {};
        Written written = write(&attempt);
        if (written.done)
            return attempt;
        if (written.was_unchanged)
            return {Outcome::kUnchanged, expected, nullptr};
        bool compares = changes != nullptr && versioning->keeps_unchanged &&
                        bms_is_subset(changes->columns, readable_columns(rel));
        StoredRow row = read_unwritten(rel, info, key, compares ? changes->columns : nullptr);
        if (!row.found)
            return {Outcome::kNotFound, 0, nullptr};
        int64 stored = stored_token(row, versioning);
        if (stored != expected)
            return {Outcome::kConflict, stored, table_key(info, key, row)};
        if (compares && has_changes(row, info, *changes))
            return {Outcome::kUnchanged, stored, nullptr};
        if (written.was_suppressed)
            break;
    }
    raise_suppressed(rel);
}

const char* outcome_name(Outcome outcome) {
    switch (outcome) {
    case Outcome::kUpdated:
        return "updated";
    case Outcome::kUnchanged:
        return "unchanged";
    case Outcome::kMerged:
        return "merged";
    case Outcome::kDeleted:
        return "deleted";
    case Outcome::kConflict:
        return "conflict";
    case Outcome::kNotFound:
        return "not_found";
    }
    pg_unreachable();
}

Attempt update_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected,
                          const Changes& changes, OpenUpdates* open) {
    return write_if_current(rel, info, key, expected, &changes, [&](Attempt* attempt) {
        attempt->outcome = Outcome::kUpdated;
        return run_update({rel, info, &key, CountedKind::kVersioning}, expected, changes,
                          &attempt->stored, open);
    });
}

Attempt delete_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected) {
    return write_if_current(rel, info, key, expected, nullptr, [&](Attempt* attempt) {
        attempt->outcome = Outcome::kDeleted;
        return run_delete({rel, info, &key, CountedKind::kVersioning}, expected);
    });
}

VersionAfterWrite::VersionAfterWrite(int own_updates)
    : expected_updates_(versioned_updates + own_updates) {}

int64 VersionAfterWrite::version(const KeyedRow& row, int64 returned) const {
    if (versioned_updates == expected_updates_)
        return returned;
    const Versioning* versioning = versioning_of(row.info);
    StoredRow now = read_row(row.rel, row.info, *row.key, bms_make_singleton(versioning->column));
    return now.found ? stored_token(now, versioning) : returned;
}

Bitmapset* columns_to_report(Relation rel, const Versioning* versioning) {
    return bms_add_member(readable_columns(rel), versioning->column);
}

int64 stored_token(const StoredRow& row, const Versioning* versioning) {
    bool is_null;
    Datum value = stored_value(row, versioning->column, &is_null);
    return token_of_datum(versioning->kind, value, is_null);
}

} // namespace interlock::version
