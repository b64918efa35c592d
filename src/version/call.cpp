#include "version/call.h"

#include "server/result_row.h"
#include "version/errors.h"

namespace interlock::version {

static RowCall read_call(const Arguments& arguments, Relation rel) {
    RowCall call = {};
    call.rel = rel;
    call.info = table_info(rel);
    call.versioning = require_versioning(rel, call.info);
    call.key = key_argument(arguments, 1, rel, call.info);
    return call;
}

template <typename Write>
static Attempt write_as_called(const RowCall& call, Write&& write) {
    Attempt attempt = write(call.expected.token);
    if (attempt.outcome == Outcome::kConflict && is_expected(call, attempt.stored))
        attempt = write(attempt.stored);
    count_call(call.info, attempt.outcome == Outcome::kConflict);
    return attempt;
}

RowCall open_call(const Arguments& arguments, LOCKMODE mode) {
    RowCall call = read_call(arguments, open_table(arguments.relation(0), mode));
    call.expected = expected_version(arguments, 2, call.rel, call.versioning);
    return call;
}

RowCall open_call_or_new(const Arguments& arguments) {
    AclMode needed = arguments.is_null(2) ? ACL_INSERT : ACL_UPDATE;
    RowCall call =
        read_call(arguments, open_table(arguments.relation(0), RowExclusiveLock, needed));
    call.expected = expected_version_or_null(arguments, 2, call.rel, call.versioning);
    return call;
}

Changes changes_argument(const Arguments& arguments, int n, const RowCall& call) {
    return parse_changes(call.rel, call.info, call.key, changes_json(arguments, n),
                         bms_make_singleton(call.versioning->column));
}

bool is_expected(const RowCall& call, int64 stored) {
    return stored == call.expected.token ||
           is_shown_as_expected(call.versioning, call.expected, stored);
}

Attempt update_as_called(const RowCall& call, const Changes& changes) {
    return write_as_called(call, [&](int64 expected) {
        return update_if_current(call.rel, call.info, call.key, expected, changes);
    });
}

Attempt delete_as_called(const RowCall& call) {
    return write_as_called(call, [&](int64 expected) {
        return delete_if_current(call.rel, call.info, call.key, expected);
    });
}

void raise_unless_written(const RowCall& call, const Attempt& attempt) {
    if (attempt.outcome == Outcome::kNotFound)
        raise_no_such_row(call.rel, call.info, call.key);
    if (attempt.outcome == Outcome::kConflict)
        raise_version_conflict(call.rel, call.info, *attempt.key, call.expected.token,
                               attempt.stored);
}

Datum report(FunctionCallInfo fcinfo, const RowCall& call, const Answer& answer) {
    Datum values[4] = {CStringGetTextDatum(answer.outcome), 0, 0, 0};
    bool nulls[4] = {false, answer.version == nullptr,
                     answer.current == nullptr || !answer.current->found,
                     answer.conflicts == nullptr && !answer.is_compared};
    if (!nulls[1])
        values[1] = version_result(call.versioning, call.expected.type, *answer.version);
    if (!nulls[2])
        values[2] = stored_row_to_jsonb(*answer.current);
    if (!nulls[3])
        values[3] = column_names(call.info->columns, answer.conflicts);
    close_table(call.rel);
    return result_row(fcinfo, values, nulls);
}

Datum report(FunctionCallInfo fcinfo, const RowCall& call, const Attempt& attempt) {
    if (attempt.outcome == Outcome::kUpdated || attempt.outcome == Outcome::kUnchanged)
        return report(fcinfo, call, {outcome_name(attempt.outcome), &attempt.stored});
    if (attempt.outcome != Outcome::kConflict)
        return report(fcinfo, call, {outcome_name(attempt.outcome)});
    StoredRow row =
        read_row(call.rel, call.info, call.key, columns_to_report(call.rel, call.versioning));
    if (!row.found) // deleted since the attempt
        return report(fcinfo, call, {outcome_name(Outcome::kNotFound)});
    int64 stored = stored_token(row, call.versioning);
    return report(fcinfo, call, {outcome_name(attempt.outcome), &stored, &row});
}

} // namespace interlock::version
