// revert_row: a new version of a row, with the values that it had before.
//
// It is an UPDATE by the caller: with the caller's privileges, and through every check of the
// table. The row is locked first, and only columns are written that have another value. Left as
// they are: the key, the version, the marker, generated columns, columns that the history ignores,
// and those that were added later.
//
// Isolation: under READ COMMITTED the values are compared with the newest version, after any wait.
// Under REPEATABLE READ and above a row that changed after the snapshot raises 40001.

#include "execution/stored_row.h"
#include "execution/write.h"
#include "history/read.h"
#include "history/short_entry.h"
#include "server/error.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/populate.h"
#include "version/argument.h"
#include "version/errors.h"
#include "version/update.h"

namespace interlock::history {

namespace {

struct RevertCall : Question {
    const version::Versioning* versioning; // null: the table has no versions
    bool has_expected;
    version::VersionArgument expected; // its type also without one
    bool by_time;
    int64 version;  // or
    TimestampTz at; // of the entry
};

enum class RevertOutcome : uint8 { kReverted, kUnchanged, kConflict, kNotFound, kNotRecorded };

struct Reverted {
    RevertOutcome outcome;
    int64 version;  // of a versioned row, as it is now
    const Key* key; // of a row in conflict
};

} // namespace

static RevertCall open_revert(const Arguments& arguments);
static Reverted revert(const RevertCall& call);
static bool returns_version(const RevertCall& call);
[[noreturn]] static void raise_not_recorded(const RevertCall& call);
static Datum report(FunctionCallInfo fcinfo, const RevertCall& call, const Reverted& reverted);

extern "C" {
PG_FUNCTION_INFO_V1(revert_row);
PG_FUNCTION_INFO_V1(try_revert_row);

// revert_row(rel, key, to_version, at, expected)
Datum revert_row(PG_FUNCTION_ARGS) {
    RevertCall call = open_revert(Arguments(fcinfo));
    Reverted reverted = revert(call);
    if (reverted.outcome == RevertOutcome::kNotFound)
        raise_no_such_row(call.rel, call.info, call.key);
    if (reverted.outcome == RevertOutcome::kConflict)
        version::raise_version_conflict(call.rel, call.info, *reverted.key, call.expected.token,
                                        reverted.version);
    if (reverted.outcome == RevertOutcome::kNotRecorded)
        raise_not_recorded(call);
    close_table(call.rel);
    if (!returns_version(call))
        PG_RETURN_NULL();
    return version::version_result(call.versioning, call.expected.type, reverted.version);
}

Datum try_revert_row(PG_FUNCTION_ARGS) {
    RevertCall call = open_revert(Arguments(fcinfo));
    return report(fcinfo, call, revert(call));
}
}

static RevertCall open_revert(const Arguments& arguments) {
    RevertCall call = {};
    call.by_time = arguments.is_null(2);
    if (call.by_time == arguments.is_null(3))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("give either argument \"to_version\" or argument \"at\""),
                        errhint("row_history() lists the versions of a row.")));
    if (call.by_time)
        call.at = DatumGetTimestampTz(arguments.value(3));
    else
        call.version = DatumGetInt64(arguments.value(2));
    static_cast<Question&>(call) = read_question(arguments, RowExclusiveLock);
    call.has_expected = !arguments.is_null(4);
    if (call.has_expected || version::versioning_of(call.info) != nullptr)
        call.versioning = version::require_versioning(call.rel, call.info);
    if (call.has_expected)
        call.expected = version::expected_version(arguments, 4, call.rel, call.versioning);
    else
        call.expected.type = arguments.type(4);
    return call;
}

static bool returns_version(const RevertCall& call) {
    return call.versioning != nullptr &&
           version::has_versions_as(call.versioning, call.expected.type);
}

// --- The values ----------------------------------------------------------------------------------

static bool has_counter(const RevertCall& call) {
    return call.versioning != nullptr && version::is_counter(call.versioning->kind);
}

// The last entry of the version that has a row; for a table without a counter that of the entry
// with this id. The owner can allow nulls in that column, and write some.
static NullableDatum state_of_version(const RevertCall& call) {
    NullableDatum state = {0, true};
    Oid table = call.history->table;
    with_spi([&] {
        PlanShape shape = {table, PlanKind("history_version")};
        shape.subject = has_counter(call) ? 1 : 0;
        shape.by_index = true;
        TablePlan plan = plan_of(shape, [&](Statement* statement) {
            statement->add("SELECT %s FROM %s h", whole_row_sql(table), qualified_name(table));
            add_entry_key(statement, statement->parameter(JSONBOID));
            statement->add(
                " AND h.%s OPERATOR(pg_catalog.=) $%d AND h.operation "
                "OPERATOR(pg_catalog.=) ANY ('{insert,update}') ORDER BY h.id DESC LIMIT 1",
                has_counter(call) ? "version" : "id", statement->parameter(INT8OID));
        });
        Parameters parameters(2);
        parameters.add(call.entry_key);
        parameters.add(Int64GetDatum(call.version));
        if (run_plan(plan, parameters, 1) == 0)
            return;
        require_result({JSONBOID});
        Datum row = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &state.isnull);
        if (!state.isnull)
            state.value = SPI_datumTransfer(row, false, -1);
    });
    return state;
}

static bool is_left_alone(const RevertCall& call, AttrNumber column) {
    Form_pg_attribute attribute = TupleDescAttr(call.info->columns, column - 1);
    return bms_is_member(column, call.info->key.attnums) ||
           bms_is_member(column, call.info->maintained) ||
           bms_is_member(column, call.info->counted) ||
           bms_is_member(column, call.history->ignored) || attribute->attgenerated != '\0' ||
           attribute->attidentity == ATTRIBUTE_IDENTITY_ALWAYS;
}

[[noreturn]] static void raise_gone(const RevertCall& call, const char* column) {
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("row of table \"%s\" cannot be reverted: column \"%s\" of that version is gone",
                RelationGetRelationName(call.rel), column),
         errhint("It was dropped or renamed since. Write the columns that you want to have back: "
                 "row_history() and row_as_of() show their values.")));
}

// The columns of the old row that are written if they differ.
static Bitmapset* columns_to_restore(const RevertCall& call, Jsonb* state) {
    Bitmapset* columns = nullptr;
    (void)with_members(state, [&](std::string_view name) {
        AttrNumber column = find_attribute(call.info->columns, name);
        if (column == InvalidAttrNumber)
            raise_gone(call, pnstrdup(name.data(), name.size()));
        if (!is_left_alone(call, column))
            columns = bms_add_member(columns, column);
        return true;
    });
    return columns;
}

static bool same_member(Jsonb* left, Jsonb* right, std::string_view name) {
    Jsonb* members[2];
    for (int i = 0; i < 2; i++) {
        JsonbValue* member = getKeyJsonValueFromContainer(&(i == 0 ? left : right)->root,
                                                          name.data(), name.size(), nullptr);
        if (member == nullptr) // the column was renamed in the call
            return false;
        members[i] = JsonbValueToJsonb(member);
    }
    return compareJsonbContainers(&members[0]->root, &members[1]->root) == 0;
}

// The members that are others in the stored row. What is the same is not read: its text may be one
// that the type does not take any more.
static Jsonb* differing_members(const RevertCall& call, const Bitmapset* columns, Jsonb* state,
                                const StoredRow& row) {
    Jsonb* stored = DatumGetJsonbP(stored_row_to_jsonb(row, JsonFor::kStorage));
    return with_members(state, [&](std::string_view name) {
        return bms_is_member(find_attribute(call.info->columns, name), columns) &&
               !same_member(state, stored, name);
    });
}

static Changes changes_to(const RevertCall& call, Jsonb* members) {
    return with_hint(
        [] {
            errhint(
                "A column had another type at that time. Write the columns that you want to "
                "restore. row_history() shows their values.");
        },
        [&] {
            Changes changes = {};
            with_stored_money(
                [&] { changes = parse_changes(call.rel, call.info, call.key, members, nullptr); });
            return changes;
        });
}

// Without the columns that have the value already, which may have had another text: writing them
// would be a change to those who look at what a statement names.
static Changes differing(const RevertCall& call, const Changes& wanted, const StoredRow& row) {
    Changes changes = {};
    changes.attnums = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (wanted.count + 1)));
    changes.values = static_cast<Datum*>(palloc(sizeof(Datum) * (wanted.count + 1)));
    changes.nulls = static_cast<bool*>(palloc(sizeof(bool) * (wanted.count + 1)));
    for (int i = 0; i < wanted.count; i++) {
        AttrNumber column = wanted.attnums[i];
        NullableDatum stored;
        stored.value = stored_value(row, column, &stored.isnull);
        NullableDatum value = {wanted.values[i], wanted.nulls[i]};
        if (equal_values(call.info->columns, column, stored, value))
            continue;
        changes.columns = bms_add_member(changes.columns, column);
        changes.attnums[changes.count] = column;
        changes.values[changes.count] = value.value;
        changes.nulls[changes.count++] = value.isnull;
    }
    return changes;
}

// --- The row -------------------------------------------------------------------------------------

static bool is_expected(const RevertCall& call, int64 stored) {
    return !call.has_expected || stored == call.expected.token ||
           version::is_shown_as_expected(call.versioning, call.expected, stored);
}

static void write(const RevertCall& call, const Changes& changes, int64* version) {
    RowWrite write({call.rel, call.info, &call.key}, PlanKind("history_revert"));
    write.set(changes);
    if (call.versioning != nullptr)
        write.returns(call.versioning->column);
    NullableDatum stored = {};
    version::VersionAfterWrite after(1);
    if (!write_row(write, &stored))
        raise_suppressed(call.rel);
    if (call.versioning != nullptr)
        *version = after.version(
            write.row, version::token_of_datum(call.versioning->kind, stored.value, stored.isnull));
}

// A row that is not there and a version that is not: it is the row that is missed.
static Reverted without_state(const RevertCall& call) {
    bool found = read_row(call.rel, call.info, call.key, call.info->key.attnums).found;
    return {found ? RevertOutcome::kNotRecorded : RevertOutcome::kNotFound, 0, nullptr};
}

static Reverted revert(const RevertCall& call) {
    NullableDatum state = call.by_time ? state_at(call, call.at) : state_of_version(call);
    if (state.isnull)
        return without_state(call);
    Jsonb* members = DatumGetJsonbP(state.value);
    Bitmapset* wanted = columns_to_restore(call, members);
    Bitmapset* columns = bms_union(wanted, call.info->key.attnums);
    if (call.versioning != nullptr)
        columns = bms_add_member(columns, call.versioning->column);
    StoredRow row = read_locked_row(call.rel, call.info, call.key, columns);
    if (!row.found)
        return {RevertOutcome::kNotFound, 0, nullptr};
    Reverted reverted = {RevertOutcome::kUnchanged, 0, table_key(call.info, call.key, row)};
    if (call.versioning != nullptr)
        reverted.version = version::stored_token(row, call.versioning);
    if (!is_expected(call, reverted.version)) {
        reverted.outcome = RevertOutcome::kConflict;
        return reverted;
    }
    Changes changes =
        differing(call, changes_to(call, differing_members(call, wanted, members, row)), row);
    if (changes.count > 0) {
        write(call, changes, &reverted.version);
        reverted.outcome = RevertOutcome::kReverted;
    }
    return reverted;
}

// --- Answers -------------------------------------------------------------------------------------

namespace {

// The versions of the row that have an entry and are next to the missing one. Null: there is none.
struct Neighbours {
    const char* below;
    const char* above;
};

} // namespace

static Neighbours neighbours_of(const RevertCall& call) {
    Neighbours neighbours = {};
    Oid table = call.history->table;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        PlanShape shape = {table, PlanKind("history_neighbours")};
        shape.subject = has_counter(call) ? 1 : 0;
        shape.by_index = true;
        TablePlan plan = plan_of(shape, [&](Statement* statement) {
            const char* column = has_counter(call) ? "version" : "id";
            int key = statement->parameter(JSONBOID);
            int version = statement->parameter(INT8OID);
            statement->add(
                "SELECT pg_catalog.max(h.%s) FILTER (WHERE h.%s OPERATOR(pg_catalog.<) $%d), "
                "pg_catalog.min(h.%s) FILTER (WHERE h.%s OPERATOR(pg_catalog.>) $%d) FROM %s h",
                column, column, version, column, column, version, qualified_name(table));
            add_entry_key(statement, key);
            statement->add(" AND h.operation OPERATOR(pg_catalog.=) ANY ('{insert,update}')");
        });
        Parameters parameters(2);
        parameters.add(call.entry_key);
        parameters.add(Int64GetDatum(call.version));
        run_plan(plan, parameters);
        require_result({INT8OID, INT8OID});
        for (int i = 0; i < 2; i++) {
            char* text = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1);
            if (text != nullptr)
                (i == 0 ? neighbours.below : neighbours.above) = MemoryContextStrdup(caller, text);
        }
    });
    return neighbours;
}

// The entry below may not be what the row was: a suppressed write may have come in between, and
// another one may have undone it. So it is named, and not used.
static const char* hint_for_version(const RevertCall& call) {
    bool counts = has_counter(call);
    const char* reasons =
        counts ? "A version has no entry if nothing but the version, the marker or ignored columns "
                 "changed, if its history was suppressed, or if retention has removed the entry. "
                 "row_history() lists the entries."
               : "In a table without a version counter, to_version is the id of an entry. "
                 "row_history() lists the entries.";
    const char* one = counts ? "Version" : "Entry";
    Neighbours neighbours = neighbours_of(call);
    if (neighbours.below == nullptr && neighbours.above == nullptr)
        return psprintf("No %s of the row is recorded. %s", counts ? "version" : "entry", reasons);
    if (neighbours.above == nullptr)
        return psprintf("%s %s is the last one that is recorded. %s", one, neighbours.below,
                        reasons);
    if (neighbours.below == nullptr)
        return psprintf("%s %s is the first one that is recorded. %s", one, neighbours.above,
                        reasons);
    return psprintf("%s %s and %s are recorded, and none between them. %s",
                    counts ? "Versions" : "Entries", neighbours.below, neighbours.above, reasons);
}

static void raise_not_recorded(const RevertCall& call) {
    const char* key = key_to_text(call.info, call.key);
    const char* table = shown_name(call.rel);
    if (call.by_time)
        ereport(ERROR,
                (errcode(ERRCODE_NO_DATA_FOUND),
                 errmsg("history of table \"%s\" has no entry that shows the row at %s",
                        RelationGetRelationName(call.rel), timestamptz_to_str(call.at)),
                 errdetail_internal("%s", json_object({{"table", table}, {"key", nullptr, key}})),
                 errhint("Retention may have removed it. row_history() lists the entries.")));
    char* version = psprintf(INT64_FORMAT, call.version);
    const char* hint = hint_for_version(call);
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
                    errmsg("history of table \"%s\" has no %s %s of the row",
                           RelationGetRelationName(call.rel),
                           has_counter(call) ? "version" : "entry", version),
                    errdetail_internal("%s", json_object({{"table", table},
                                                          {"key", nullptr, key},
                                                          {"version", nullptr, version}})),
                    errhint("%s", hint)));
}

static const char* outcome_text(RevertOutcome outcome) {
    switch (outcome) {
    case RevertOutcome::kReverted:
        return "reverted";
    case RevertOutcome::kUnchanged:
        return "unchanged";
    case RevertOutcome::kConflict:
        return "conflict";
    case RevertOutcome::kNotFound:
        return "not_found";
    case RevertOutcome::kNotRecorded:
        return "not_recorded";
    }
    pg_unreachable();
}

// (outcome, version, current): a row in conflict is shown as far as the caller may read it.
static Datum report(FunctionCallInfo fcinfo, const RevertCall& call, const Reverted& reverted) {
    bool has_row = reverted.outcome != RevertOutcome::kNotFound &&
                   reverted.outcome != RevertOutcome::kNotRecorded;
    Datum values[3] = {CStringGetTextDatum(outcome_text(reverted.outcome)), 0, 0};
    bool nulls[3] = {false, !has_row || !returns_version(call), true};
    if (!nulls[1])
        values[1] = version::version_result(call.versioning, call.expected.type, reverted.version);
    if (reverted.outcome == RevertOutcome::kConflict) {
        StoredRow row = read_row(call.rel, call.info, call.key,
                                 version::columns_to_report(call.rel, call.versioning));
        nulls[2] = !row.found;
        if (row.found)
            values[2] = stored_row_to_jsonb(row);
    }
    close_table(call.rel);
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::history
