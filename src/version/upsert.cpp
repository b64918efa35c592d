// versioned_upsert: inserts a row that is expected not to be there, as a PUT with If-None-Match: *
// does, or updates it at the version that its caller read (If-Match).
//
// A row that was deleted since it was read is not inserted again: that is P0002 or not_found.

#include "execution/insert.h"
#include "server/error.h"
#include "version/call.h"

using namespace interlock;

namespace {

struct Insertion {
    bool done;
    int64 version; // of the new row, else of the one
    StoredRow row; // that is there
};

Insertion insert_unless_there(const RowCall& call, const Changes& changes);
[[noreturn]] void raise_is_there(const RowCall& call, const Insertion& found);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(versioned_upsert);
PG_FUNCTION_INFO_V1(try_versioned_upsert);

// versioned_upsert(rel, key, expected, changes)
Datum versioned_upsert(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    RowCall call = open_call_or_new(arguments);
    Changes changes = changes_argument(arguments, 3, call);
    int64 version;
    if (call.expected.is_null) {
        Insertion insertion = insert_unless_there(call, changes);
        if (!insertion.done)
            raise_is_there(call, insertion);
        version = insertion.version;
    } else {
        Attempt attempt = update_as_called(call, changes);
        raise_unless_written(call, attempt);
        version = attempt.stored;
    }
    close_table(call.rel);
    return version_result(call.versioning, call.expected.type, version);
}

Datum try_versioned_upsert(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    RowCall call = open_call_or_new(arguments);
    Changes changes = changes_argument(arguments, 3, call);
    if (!call.expected.is_null)
        return report(fcinfo, call, update_as_called(call, changes));
    Insertion insertion = insert_unless_there(call, changes);
    if (insertion.done)
        return report(fcinfo, call, {"inserted", &insertion.version});
    return report(fcinfo, call,
                  {outcome_name(Outcome::kConflict), &insertion.version, &insertion.row});
}
}

namespace {

// A type that rounds the key, or a trigger that sets it, would insert another row than the caller
// has named.
void require_key_as_given(const RowCall& call, const NullableDatum* stored) {
    Key key = call.key;
    for (int i = 0; i < key.by->count; i++)
        key.values[i] = stored[i].value;
    if (compare_keys(key, call.key) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("row of table \"%s\" would be stored under another key",
                        RelationGetRelationName(call.rel)),
                 errhint("Give the key as its columns and the triggers of the table store it.")));
}

bool insert(const RowCall& call, const Changes& changes, int64* version) {
    const TableInfo* info = call.info;
    const UniqueKey* by = call.key.by;
    int count = 0;
    auto* values =
        static_cast<NamedValue*>(palloc(sizeof(NamedValue) * (by->count + changes.count)));
    AttrNumber returned[1 + INDEX_MAX_KEYS] = {call.versioning->column};
    for (int i = 0; i < by->count; i++) {
        const KeyColumn& column = by->columns[i];
        values[count++] = {column.attnum, column.type, call.key.values[i]};
        returned[1 + i] = column.attnum;
    }
    for (int i = 0; i < changes.count; i++) {
        AttrNumber column = changes.attnums[i];
        values[count++] = {column, TupleDescAttr(info->columns, column - 1)->atttypid,
                           changes.values[i], changes.nulls[i]};
    }
    NullableDatum stored[1 + INDEX_MAX_KEYS];
    if (!insert_row({call.rel, info, PlanKind("version_insert"), values, count, returned,
                     1 + by->count, false, by},
                    stored))
        return false;
    require_key_as_given(call, stored + 1);
    *version = token_of_datum(call.versioning->kind, stored[0].value, stored[0].isnull);
    return true;
}

// A row that is there before is not waited for, as it is when the INSERT finds it: an INSERT takes
// its version from the column's default before it waits, and would start at one that the row has
// had if it is deleted meanwhile.
Insertion insert_unless_there(const RowCall& call, const Changes& changes) {
    constexpr int kAttempts = 3;
    const Bitmapset* columns = columns_to_report(call.rel, call.versioning);
    for (int i = 0;; i++) {
        StoredRow row = read_row(call.rel, call.info, call.key, columns);
        if (row.found)
            return {false, stored_token(row, call.versioning), row};
        if (i == kAttempts)
            raise_suppressed(call.rel);
        Insertion insertion = {true, 0, {}};
        if (insert(call, changes, &insertion.version))
            return insertion;
    }
}

void raise_is_there(const RowCall& call, const Insertion& found) {
    char* stored = token_to_json(call.versioning->kind, found.version);
    const Key* key = table_key(call.info, call.key, found.row);
    ereport(ERROR,
            (errcode(kVersionConflict),
             errmsg("version conflict in table \"%s\": expected no row, found version %s",
                    RelationGetRelationName(call.rel), stored),
             errdetail_internal("%s", json_object({{"table", qualified_name(call.rel)},
                                                   {"key", nullptr, key_to_text(call.info, *key)},
                                                   {"expected"},
                                                   {"version", nullptr, stored}})),
             errhint("Read the row, and give its version as expected to change it.")));
}

} // namespace
