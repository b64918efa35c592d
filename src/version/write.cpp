// versioned_update and versioned_delete: one row is written if it still has the expected version.

#include "version/call.h"

namespace interlock::version {

static OnConflict conflict_argument(const Arguments& arguments, int n);

extern "C" {
PG_FUNCTION_INFO_V1(versioned_update);
PG_FUNCTION_INFO_V1(try_versioned_update);
PG_FUNCTION_INFO_V1(versioned_delete);
PG_FUNCTION_INFO_V1(try_versioned_delete);

Datum versioned_update(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    RowCall call = open_call(arguments);
    Changes changes = changes_argument(arguments, 3, call);
    Attempt attempt = update_as_called(call, changes);
    raise_unless_written(call, attempt);
    close_table(call.rel);
    return version_result(call.versioning, call.expected.type, attempt.stored);
}

Datum try_versioned_update(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    RowCall call = open_call(arguments);
    Changes changes = changes_argument(arguments, 3, call);
    OnConflict on_conflict = conflict_argument(arguments, 5);
    Attempt attempt = update_as_called(call, changes);
    if (attempt.outcome == Outcome::kConflict && !arguments.is_null(4)) {
        Merge merged = merge_changes(call.rel, call.info, call.key, changes,
                                     arguments.jsonb(4, "base"), on_conflict);
        const int64* version = merged.outcome == Outcome::kNotFound ? nullptr : &merged.stored;
        return report(fcinfo, call,
                      {outcome_name(merged.outcome), version, &merged.row, merged.conflicts,
                       merged.outcome == Outcome::kConflict});
    }
    return report(fcinfo, call, attempt);
}

Datum versioned_delete(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    RowCall call = open_call(arguments);
    raise_unless_written(call, delete_as_called(call));
    close_table(call.rel);
    PG_RETURN_VOID();
}

Datum try_versioned_delete(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    RowCall call = open_call(arguments);
    return report(fcinfo, call, delete_as_called(call));
}
}

static OnConflict conflict_argument(const Arguments& arguments, int n) {
    const char* mode = arguments.string(n, "on_conflict");
    if (strcmp(mode, "report") == 0)
        return OnConflict::kReport;
    if (strcmp(mode, "merge") != 0)
        refuse_value("on_conflict", mode, "Use 'report' or 'merge'.");
    if (arguments.is_null(4))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("argument \"base\" must not be null when conflicts are merged"),
                        errhint("Give the row as the client read it.")));
    return OnConflict::kMerge;
}

} // namespace interlock::version
