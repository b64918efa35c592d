// row_locks: the marked rows of every table with markers that the caller may read; and what view
// held shows of them: those that are live, a line for each table that could not be looked at, and
// to members of pg_read_all_stats also rows that they may not read, without the key.
//
// The caller of the view has not named these tables. So privileges are checked before anything is
// locked, no lock is waited for, and no code of the tables' owners runs, neither in planning nor in
// a cast. Policies have to be evaluated where they apply to the caller, and then only those of the
// caller and of superusers are.

#include "execution/stored_row.h"
#include "marker/marker.h"
#include "marker/scan.h"
#include "marker/shown.h"
#include "server/arguments.h"
#include "server/relation_lock.h"
#include "server/result_row.h"
#include "table/own_table.h"
#include "table/peek.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/row.h"
#include "table/row_json.h"

namespace interlock::marker {

namespace {

// A table on which markers were enabled, and the columns to return.
struct Listed {
    Relation rel;
    const Marker* marker;
    List* key; // names of columns; NIL: it is not shown
    ReturnSetInfo* output;
    bool is_held; // for view held
};

} // namespace

constexpr const char* kPurpose = "list every marker";

static bool list_table(Oid relid, ReturnSetInfo* output);

static bool sees_all();
static bool list_held_of_table(Oid relid, ReturnSetInfo* output);
static void put_unseen(Oid relid, ReturnSetInfo* output, const char* why);

extern "C" {
PG_FUNCTION_INFO_V1(list_row_locks);
PG_FUNCTION_INFO_V1(list_held_markers);

Datum list_row_locks(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, marker_tables(MarkerTables::kEnabled)) {
        Oid relid = lfirst_oid(cell);
        peek(relid, kPurpose, [&] { return list_table(relid, output); });
    }
    return 0;
}

Datum list_held_markers(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, marker_tables(sees_all() ? MarkerTables::kAll : MarkerTables::kEnabled)) {
        Oid relid = lfirst_oid(cell);
        CHECK_FOR_INTERRUPTS();
        Unseen unseen = look_and_release([&] { return list_held_of_table(relid, output); });
        if (unseen.why != nullptr)
            put_unseen(relid, output, unseen.why);
    }
    return 0;
}
}

// The last one, as in the metadata (table/info.h).
static const Marker* marker_of(Relation rel) {
    const TriggerDesc* triggers = triggers_of(rel);
    const Marker* marker = nullptr;
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++)
        if (trigger_calls(&triggers->triggers[i], "marker_trigger"))
            marker =
                read_marker(RelationGetRelid(rel), RelationGetDescr(rel), &triggers->triggers[i]);
    return marker;
}

static Bitmapset* key_attnums(const Listed& table, Relation rel) {
    Bitmapset* attnums = nullptr;
    ListCell* cell;
    foreach (cell, table.key)
        attnums = bms_add_member(
            attnums, find_attribute(RelationGetDescr(rel), static_cast<char*>(lfirst(cell))));
    return attnums;
}

static bool may_list(const Listed& table) {
    Bitmapset* columns = bms_union(table.marker->attnums, key_attnums(table, table.rel));
    return bms_is_subset(columns, readable_columns(table.rel));
}

// --- A row ---------------------------------------------------------------------------------------

static Datum key_json(const Listed& table, TupleDesc columns, const RowValues& row) {
    int count = list_length(table.key);
    TupleDesc key = CreateTemplateTupleDesc(count);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc0(sizeof(bool) * count));
    for (int i = 0; i < count; i++) {
        const char* name = static_cast<char*>(list_nth(table.key, i));
        AttrNumber column = find_attribute(columns, name);
        Oid type = getBaseType(TupleDescAttr(columns, column - 1)->atttypid);
        values[i] = row.values[column - 1];
        TupleDescInitEntry(key, i + 1, name, type, -1, 0);
    }
    return row_to_jsonb(key, heap_form_tuple(key, values, nulls));
}

static bool is_short(const Listed& table, TupleDesc columns, const RowValues& row) {
    Size size = 0;
    ListCell* cell;
    foreach (cell, table.key) {
        AttrNumber attnum = find_attribute(columns, static_cast<char*>(lfirst(cell)));
        Form_pg_attribute column = TupleDescAttr(columns, attnum - 1);
        Datum value = row.values[attnum - 1];
        if (column->attlen == -1)
            size += toast_raw_datum_size(value);
        if (size > kShownBytes || !has_short_text(column->atttypid, value))
            return false;
    }
    return table.key != NIL;
}

// Null where the key is long, or would be far longer as text.
static NullableDatum shown_key(const Listed& table, TupleDesc columns, const RowValues& row) {
    if (!is_short(table, columns, row))
        return {0, true};
    Datum key = key_json(table, columns, row);
    return {key, VARSIZE(DatumGetPointer(key)) > 2 * kShownBytes};
}

// rel, name, holder, since, expires_at, note
static void put_held(const Listed& table, const MarkerState& state, NullableDatum holder,
                     TupleDesc columns, const RowValues& row) {
    if (!state.live)
        return;
    NullableDatum key = shown_key(table, columns, row);
    Datum values[6] = {ObjectIdGetDatum(RelationGetRelid(table.rel)), 0, shown_text(holder),
                       TimestampTzGetDatum(state.since), TimestampTzGetDatum(state.until)};
    bool nulls[6] = {
        false, key.isnull, holder.isnull, state.since == DT_NOBEGIN, state.until == DT_NOBEGIN,
        true};
    if (!key.isnull)
        values[1] = CStringGetTextDatum(DatumGetCString(DirectFunctionCall1(jsonb_out, key.value)));
    add_result_row(table.output, values, nulls);
}

// rel, key, holder, locked_at, expires_at, reason, live; values out of line are fetched.
static void list_row(const Listed& table, const Marker* marker, TupleDesc columns,
                     const RowValues& row) {
    MarkerState state = marker_status(marker, row, GetCurrentTimestamp());
    NullableDatum holder = row[marker->columns[kHolder].attnum];
    holder.isnull = holder.isnull || !state.set;
    if (table.is_held) {
        put_held(table, state, holder, columns, row);
        return;
    }
    NullableDatum reason = row[marker->columns[kReason].attnum];
    NullableDatum key = shown_key(table, columns, row);
    Datum values[7] = {ObjectIdGetDatum(RelationGetRelid(table.rel)),
                       key.value,
                       shown_text(holder),
                       TimestampTzGetDatum(state.since),
                       TimestampTzGetDatum(state.until),
                       shown_text(reason),
                       BoolGetDatum(state.live)};
    bool nulls[7] = {false,
                     key.isnull,
                     holder.isnull,
                     state.since == DT_NOBEGIN,
                     state.until == DT_NOBEGIN,
                     reason.isnull,
                     false};
    add_result_row(table.output, values, nulls);
}

// --- Without policies ----------------------------------------------------------------------------

// The names that the trigger has are those of a partition's columns, too.
static void list_stored(const Listed& table, Relation rel) {
    const Marker* marker = rel == table.rel ? table.marker : marker_of(rel);
    if (marker == nullptr || !marker->usable)
        return;
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "listed row", ALLOCSET_DEFAULT_SIZES);
    MarkedScan scan = begin_marked_scan(rel, marker);
    while (next_marked(&scan)) {
        in_context(memory, [&] {
            list_row(table, marker, RelationGetDescr(rel), values_in(scan.row));
            return 0;
        });
        MemoryContextReset(memory);
    }
    end_marked_scan(&scan);
    MemoryContextDelete(memory);
}

// Foreign partitions are left out. False when another transaction has locked a partition.
static bool list_partitions(const Listed& table) {
    ListCell* cell;
    foreach (cell, find_all_inheritors(RelationGetRelid(table.rel), NoLock, nullptr)) {
        Oid relid = lfirst_oid(cell);
        if (get_rel_relkind(relid) != RELKIND_RELATION)
            continue;
        if (!lock_without_waiting(relid, AccessShareLock))
            return false;
        Relation rel = try_relation_open(relid, NoLock);
        if (rel == nullptr)
            continue;
        list_stored(table, rel);
        relation_close(rel, NoLock);
    }
    return true;
}

// --- With policies -------------------------------------------------------------------------------

static void write_list(Statement* statement, Relation rel, const TableInfo* info,
                       const Bitmapset* columns) {
    const char* separator = "SELECT ";
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        statement->add("%st.%s", separator, quote_identifier(column_name(info, column)));
        separator = ", ";
    }
    statement->add(" FROM %s t WHERE t.%s OPERATOR(pg_catalog.=) 1", rows_of(rel),
                   quoted(marker_of(info), kStatus));
}

static void list_by_statement(const Listed& table) {
    const TableInfo* info = table_info(table.rel);
    StoredRow row = {};
    row.attnums = bms_union(marker_of(info)->attnums, info->key.attnums);
    PlanShape shape = {RelationGetRelid(table.rel), PlanKind("marker_list")};
    TablePlan plan = plan_of(
        shape, [&](Statement* statement) { write_list(statement, table.rel, info, row.attnums); });
    uint64 count = run_plan(plan, Parameters(1));
    require_columns(info, row.attnums);
    row.columns = SPI_tuptable->tupdesc;
    SPITupleTable* rows = SPI_tuptable;
    for (uint64 i = 0; i < count; i++) {
        row.tuple = rows->vals[i];
        HeapTuple whole = stored_row_as_tuple(row, info);
        list_row(table, marker_of(info), info->columns, values_of_row(info->columns, whole));
    }
}

static bool is_trusted(Oid owner) { return owner == GetUserId() || superuser_arg(owner); }

// The statement opens the partitions and plans the expressions of their indexes, so they must not
// be locked, and their owners must be trusted, too. False when another transaction has locked one.
static bool lock_partitions(const Listed& table, bool* are_trusted) {
    ListCell* cell;
    foreach (cell, find_all_inheritors(RelationGetRelid(table.rel), NoLock, nullptr)) {
        Oid relid = lfirst_oid(cell);
        if (!lock_without_waiting(relid, AccessShareLock))
            return false;
        Oid owner = owner_of_table(relid);
        *are_trusted = *are_trusted && (!OidIsValid(owner) || is_trusted(owner));
    }
    return true;
}

// False when another transaction has locked a part of it.
static bool list_with_policies(const Listed& table) {
    bool are_trusted = is_trusted(table.rel->rd_rel->relowner);
    if (are_trusted && table.rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
        !lock_partitions(table, &are_trusted))
        return false;
    if (are_trusted)
        as_restricted(GetUserId(), 0, [&] { with_spi([&] { list_by_statement(table); }); });
    return true;
}

// --- A table -------------------------------------------------------------------------------------

// False when another transaction has locked a part of it.
static bool list_rows(const Listed& table) {
    Relation rel = table.rel;
    if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
        return list_with_policies(table);
    if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
        return list_partitions(table);
    if (rel->rd_rel->relkind == RELKIND_RELATION)
        list_stored(table, rel);
    return true;
}

// Checks made before the lock are repeated after it.
static bool list_table(Oid relid, ReturnSetInfo* output) {
    if (!has_any_privilege(relid, ACL_SELECT))
        return true;
    if (!lock_without_waiting(relid, AccessShareLock))
        return false;
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return true; // dropped meanwhile
    Listed table = {rel, marker_of(rel), key_column_names(rel), output, false};
    bool listed = true;
    bool is_marked = table.marker != nullptr && !RELATION_IS_OTHER_TEMP(rel);
    if (is_marked && table.marker->well_formed && !table.marker->usable)
        warn_unseen(relid, kPurpose, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "A marker column is gone or has another type.");
    else if (is_marked && table.marker->usable && may_list(table))
        listed = list_rows(table);
    relation_close(rel, NoLock);
    return listed;
}

// --- For view held -------------------------------------------------------------------------------

static bool sees_all() { return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS); }

static void put_unseen(Oid relid, ReturnSetInfo* output, const char* why) {
    if (get_rel_name(relid) == nullptr)
        return; // dropped meanwhile
    Datum values[6] = {ObjectIdGetDatum(relid)};
    bool nulls[6] = {false, true, true, true, true, false};
    values[5] = CStringGetTextDatum(psprintf("not looked at: %s", why));
    add_result_row(output, values, nulls);
}

// The rows without their keys, which the reader may not see.
static bool list_without_keys(Listed table) {
    table.key = NIL;
    if (table.rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
        return list_partitions(table);
    list_stored(table, table.rel);
    return true;
}

// Whether its policies apply to the reader and would run code of others.
static bool has_untrusted_policies(Relation rel) {
    return check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED &&
           !is_trusted(rel->rd_rel->relowner);
}

// False when another transaction has locked a part of it.
static bool list_held_of(const Listed& table) {
    Oid relid = RelationGetRelid(table.rel);
    if (RELATION_IS_OTHER_TEMP(table.rel) || table.marker == nullptr)
        return true;
    if (!table.marker->usable) {
        if (table.marker->well_formed)
            put_unseen(relid, table.output, "A marker column is gone or has another type.");
        return true;
    }
    if (sees_all() && (!may_list(table) || has_untrusted_policies(table.rel)))
        return list_without_keys(table);
    if (!may_list(table))
        return true;
    if (has_untrusted_policies(table.rel))
        put_unseen(relid, table.output, "Its row security would run code of its owner.");
    return list_rows(table);
}

static bool list_held_of_table(Oid relid, ReturnSetInfo* output) {
    if (!sees_all() && !has_any_privilege(relid, ACL_SELECT))
        return true;
    if (!lock_without_waiting(relid, AccessShareLock))
        return false;
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return true; // dropped meanwhile
    bool listed = list_held_of({rel, marker_of(rel), key_column_names(rel), output, true});
    relation_close(rel, NoLock);
    return listed;
}

List* marker_tables(MarkerTables which) {
    require_schema_names();
    const char* condition = which == MarkerTables::kStored ? "c.relkind OPERATOR(pg_catalog.=) 'r'"
                            : which == MarkerTables::kAll
                                ? "t.tgparentid OPERATOR(pg_catalog.=) 0"
                                : "t.tgparentid OPERATOR(pg_catalog.=) 0 AND "
                                  "pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')";
    return query_oids(
        psprintf("SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_trigger t "
                 "JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid "
                 "WHERE t.tgfoid OPERATOR(pg_catalog.=) %u AND %s "
                 "AND (c.relpersistence OPERATOR(pg_catalog.<>) 't' OR "
                 "c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) "
                 "ORDER BY 1",
                 own_trigger_function("marker_trigger"), condition));
}

} // namespace interlock::marker
