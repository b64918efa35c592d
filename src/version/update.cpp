#include "version/update.h"

#include "execution/write.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "version/argument.h"

using namespace interlock;

namespace {

// What every verb on one versioned row is given.
struct Call {
    Relation rel;
    const TableInfo* info;
    const Versioning* versioning;
    Key key;
    VersionArgument expected;
};

Call open_call(const Arguments& arguments);
Attempt update_as_called(const Call& call, const Changes& changes);
Attempt delete_as_called(const Call& call);
Datum report(FunctionCallInfo fcinfo, const Call& call, Outcome outcome, int64 token,
             const StoredRow* row, const Bitmapset* conflicts);
bool wants_merge(const Arguments& arguments, int n);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(versioned_update);
PG_FUNCTION_INFO_V1(try_versioned_update);
PG_FUNCTION_INFO_V1(versioned_delete);
PG_FUNCTION_INFO_V1(try_versioned_delete);

Datum versioned_update(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments);
    Changes changes = parse_changes(call.rel, call.info, arguments.jsonb(3, "changes"),
                                    bms_make_singleton(call.versioning->column));
    Attempt attempt = update_as_called(call, changes);
    if (attempt.outcome == Outcome::kNotFound)
        raise_no_such_row(call.rel, call.info, call.key);
    if (attempt.outcome == Outcome::kConflict)
        raise_version_conflict(call.rel, call.info, call.key, call.expected.token, attempt.stored);
    close_table(call.rel);
    return version_result(call.versioning, call.expected.type, attempt.stored);
}

Datum try_versioned_update(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments);
    Changes changes = parse_changes(call.rel, call.info, arguments.jsonb(3, "changes"),
                                    bms_make_singleton(call.versioning->column));
    bool merge = wants_merge(arguments, 5);
    Attempt attempt = update_as_called(call, changes);
    if (attempt.outcome == Outcome::kConflict && merge) {
        Merge merged =
            merge_changes(call.rel, call.info, call.key, changes, arguments.jsonb(4, "base"));
        return report(fcinfo, call, merged.outcome, merged.stored, &merged.row, merged.conflicts);
    }
    return report(fcinfo, call, attempt.outcome, attempt.stored, nullptr, nullptr);
}

Datum versioned_delete(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments);
    Attempt attempt = delete_as_called(call);
    if (attempt.outcome == Outcome::kNotFound)
        raise_no_such_row(call.rel, call.info, call.key);
    if (attempt.outcome == Outcome::kConflict)
        raise_version_conflict(call.rel, call.info, call.key, call.expected.token, attempt.stored);
    close_table(call.rel);
    PG_RETURN_VOID();
}

Datum try_versioned_delete(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments);
    Attempt attempt = delete_as_called(call);
    return report(fcinfo, call, attempt.outcome, attempt.stored, nullptr, nullptr);
}
}

namespace {

Call open_call(const Arguments& arguments) {
    Call call = {};
    call.rel = open_table(arguments.relation(0), RowExclusiveLock);
    call.info = table_info(call.rel);
    call.versioning = require_versioning(call.rel, call.info);
    call.key = key_argument(arguments, 1, call.rel, call.info);
    call.expected = expected_version(arguments, 2, call.rel, call.versioning);
    return call;
}

template <typename Write>
Attempt write_as_called(const Call& call, Write&& write) {
    Attempt attempt = write(call.expected.token);
    if (attempt.outcome == Outcome::kConflict &&
        is_shown_as_expected(call.versioning, call.expected, attempt.stored))
        attempt = write(attempt.stored);
    return attempt;
}

Attempt update_as_called(const Call& call, const Changes& changes) {
    return write_as_called(call, [&](int64 expected) {
        return update_if_current(call.rel, call.info, call.key, expected, changes);
    });
}

Attempt delete_as_called(const Call& call) {
    return write_as_called(call, [&](int64 expected) {
        return delete_if_current(call.rel, call.info, call.key, expected);
    });
}

// Builds (outcome, version, current[, conflicts]). A conflict shows the row as it is now.
Datum report(FunctionCallInfo fcinfo, const Call& call, Outcome outcome, int64 token,
             const StoredRow* row, const Bitmapset* conflicts) {
    StoredRow read = {};
    if (row == nullptr && outcome == Outcome::kConflict) {
        read =
            read_row(call.rel, call.info, call.key, columns_to_report(call.rel, call.versioning));
        row = &read;
        if (!read.found)
            outcome = Outcome::kNotFound; // deleted since the attempt
        else
            token = stored_token(read, call.versioning);
    }
    Datum values[4] = {CStringGetTextDatum(outcome_name(outcome)), 0, 0, 0};
    bool nulls[4] = {false, outcome == Outcome::kNotFound || outcome == Outcome::kDeleted, true,
                     conflicts == nullptr};
    if (!nulls[1])
        values[1] = version_result(call.versioning, call.expected.type, token);
    if (row != nullptr && row->found) {
        values[2] = stored_row_to_jsonb(*row);
        nulls[2] = false;
    }
    if (!nulls[3])
        values[3] = column_names(call.info->columns, conflicts);
    close_table(call.rel);
    return result_row(fcinfo, values, nulls);
}

bool wants_merge(const Arguments& arguments, int n) {
    const char* mode = arguments.string(n, "on_conflict");
    if (strcmp(mode, "report") == 0)
        return false;
    if (strcmp(mode, "merge") != 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("unknown value \"%s\" for argument \"on_conflict\"", mode),
                        errhint("Use 'report' or 'merge'.")));
    if (arguments.is_null(4))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("argument \"base\" must not be null when conflicts are merged"),
                        errhint("Give the row as the client read it.")));
    return true;
}

} // namespace

namespace interlock {

namespace {

constexpr int kAttempts = 3;

bool run_update(const KeyedRow& row, int64 expected, const Changes& changes, int64* token,
                OpenUpdates* open) {
    const Versioning* versioning = versioning_of(row.info);
    RowWrite write(row, PlanKind("version_update"));
    write.set(changes);
    if (changes.count == 0)
        write.keep(versioning->column);
    write.require(has_version(&write.terms, versioning, expected));
    write.returns(versioning->column);
    NullableDatum stored;
    if (!write_row(write, &stored, open))
        return false;
    *token = token_of_datum(versioning->kind, stored.value, stored.isnull);
    return true;
}

bool run_delete(const KeyedRow& row, int64 expected) {
    RowWrite write(row, PlanKind("version_delete"), RowAction::kDelete);
    write.require(has_version(&write.terms, versioning_of(row.info), expected));
    return write_row(write);
}

template <typename Write>
Attempt write_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected,
                         Write&& write) {
    const Versioning* versioning = versioning_of(info);
    for (int i = 0; i < kAttempts; i++) {
        Attempt attempt = {};
        if (write(&attempt))
            return attempt;
        StoredRow row = read_row(rel, info, key, bms_make_singleton(versioning->column));
        if (!row.found)
            return {Outcome::kNotFound, 0};
        int64 stored = stored_token(row, versioning);
        if (stored != expected)
            return {Outcome::kConflict, stored};
    }
    raise_suppressed(rel);
}

} // namespace

const char* outcome_name(Outcome outcome) {
    switch (outcome) {
    case Outcome::kUpdated:
        return "updated";
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
    return write_if_current(rel, info, key, expected, [&](Attempt* attempt) {
        attempt->outcome = Outcome::kUpdated;
        return run_update({rel, info, &key}, expected, changes, &attempt->stored, open);
    });
}

Attempt delete_if_current(Relation rel, const TableInfo* info, const Key& key, int64 expected) {
    return write_if_current(rel, info, key, expected, [&](Attempt* attempt) {
        attempt->outcome = Outcome::kDeleted;
        return run_delete({rel, info, &key}, expected);
    });
}

Bitmapset* columns_to_report(Relation rel, const Versioning* versioning) {
    return bms_add_member(readable_columns(rel), versioning->column);
}

int64 stored_token(const StoredRow& row, const Versioning* versioning) {
    bool is_null;
    Datum value = stored_value(row, versioning->column, &is_null);
    return token_of_datum(versioning->kind, value, is_null);
}

} // namespace interlock
