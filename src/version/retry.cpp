// update_with_retry: read, transform, write if unchanged, and again after a conflict.
//
// The first attempt is optimistic, unless another transaction has the row: the write would only
// wait for it, and then fail. Then, and after a conflict, the row is locked before it is read, so
// that an attempt cannot fail. Writers wait for a row in turn (version/turn.h). Under REPEATABLE
// READ and above a wait ends with 40001 in any case, and is for the row alone.

#include "server/arguments.h"
#include "server/named_function.h"
#include "server/result_row.h"
#include "version/turn.h"
#include "version/update.h"

namespace interlock::version {

namespace {

struct Transform {
    FmgrInfo function;
    Datum args;
};

} // namespace

static Transform check_transform(const Arguments& arguments);
static StoredRow lock_in_turn(Relation rel, const TableInfo* info, const Key& key,
                              const Bitmapset* columns, bool is_busy);
static Jsonb* run_transform(Transform* transform, Datum current);
static Datum report(FunctionCallInfo fcinfo, const char* outcome, const Versioning* versioning,
                    bool found, int64 token, int attempts);

extern "C" {
PG_FUNCTION_INFO_V1(update_with_retry);

Datum update_with_retry(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_table(arguments.relation(0), RowExclusiveLock);
    const TableInfo* info = table_info(rel);
    const Versioning* versioning = require_versioning(rel, info);
    Key key = key_argument(arguments, 1, rel, info);
    Transform transform = check_transform(arguments);
    int retries = not_negative(DatumGetInt32(arguments.required(4, "max_retries")), "max_retries");

    Bitmapset* columns = columns_to_report(rel, versioning);
    int64 token = 0;
    int attempts = 0;
    const char* outcome = nullptr;
    while (outcome == nullptr) {
        CHECK_FOR_INTERRUPTS();
        StoredRow row = read_row(rel, info, key, columns);
        if (attempts > 0)
            count(info, CountedKind::kVersioning, Counter::kRetries);
        if (row.found && (row.is_busy || attempts > 0))
            row = lock_in_turn(rel, info, key, columns, row.is_busy);
        attempts++;
        if (!row.found) {
            outcome = outcome_name(Outcome::kNotFound);
            break;
        }
        token = stored_token(row, versioning);
        Jsonb* json = run_transform(&transform, stored_row_to_jsonb(row));
        Changes changes = {};
        if (json != nullptr)
            changes = parse_changes(rel, info, key, json, bms_make_singleton(versioning->column));
        if (changes.count == 0) {
            outcome = "unchanged";
            break;
        }
        Attempt attempt = update_if_current(rel, info, key, token, changes);
        count_call(info, attempt.outcome == Outcome::kConflict);
        token = attempt.stored;
        if (attempt.outcome != Outcome::kConflict || attempts > retries)
            outcome = outcome_name(attempt.outcome);
    }
    close_table(rel);
    return report(fcinfo, outcome, versioning, strcmp(outcome, "not_found") != 0, token, attempts);
}
}

constexpr const char* kTransformHint =
    "A transform takes (current jsonb, args jsonb) and returns the changes as jsonb: name it as "
    "'add_tag' or 'add_tag(jsonb, jsonb)'.";

static Transform check_transform(const Arguments& arguments) {
    Oid oid =
        named_function(arguments.string(2, "transform"), {JSONBOID, JSONBOID}, kTransformHint);
    Oid* types;
    int count;
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("function with OID %u does not exist", oid)));
    auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    types = form->proargtypes.values;
    count = form->pronargs;
    if (form->prokind != PROKIND_FUNCTION || form->proretset || form->prorettype != JSONBOID ||
        count != 2 || types[0] != JSONBOID || types[1] != JSONBOID)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("function %s cannot be a transform", format_procedure(oid)),
                        errhint("%s", kTransformHint)));
    ReleaseSysCache(tuple);
    AclResult allowed = check_function_privilege(oid, GetUserId());
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(oid));

    Transform transform = {};
    fmgr_info(oid, &transform.function);
    transform.args = arguments.required(3, "args");
    return transform;
}

static StoredRow lock_in_turn(Relation rel, const TableInfo* info, const Key& key,
                              const Bitmapset* columns, bool is_busy) {
    RowLock lock = {RowStrength::kNoKeyUpdate, RowWait::kWait, CountedKind::kVersioning};
    if (!is_busy || IsolationUsesXactSnapshot())
        return read_row(rel, info, key, columns, lock);
    lock.counted_as = CountedKind::kNone;
    return count_waiting(line_of(info, CountedKind::kVersioning), [&] {
        LOCKTAG turn = take_turn(rel, info, key);
        StoredRow row = read_row(rel, info, key, columns, lock);
        keep_or_end_turn(turn, row.found);
        return row;
    });
}

// Null when the transform returns null.
static Jsonb* run_transform(Transform* transform, Datum current) {
    LOCAL_FCINFO(call, 2);
    InitFunctionCallInfoData(*call, &transform->function, 2, InvalidOid, nullptr, nullptr);
    call->args[0] = {current, false};
    call->args[1] = {transform->args, false};
    Datum result = FunctionCallInvoke(call);
    return call->isnull ? nullptr : DatumGetJsonbP(result);
}

static Datum report(FunctionCallInfo fcinfo, const char* outcome, const Versioning* versioning,
                    bool found, int64 token, int attempts) {
    // outcome, version, version_time, attempts
    Datum values[4] = {CStringGetTextDatum(outcome), 0, 0, Int32GetDatum(attempts)};
    bool nulls[4] = {false, true, true, false};
    if (found)
        set_version_columns(versioning, token, values + 1, nulls + 1);
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::version
