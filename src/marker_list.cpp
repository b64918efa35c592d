// row_locks: the marked rows of every table with markers that the caller may read.

#include "arguments.h"
#include "marker.h"
#include "plan.h"
#include "restricted.h"
#include "row.h"
#include "subtransaction.h"

using namespace interlock;

namespace {

// Whose rights a table is read with.
struct Reader {
    Oid user;          // InvalidOid: it is left out
    int flags;         // SECURITY_* bits
    bool has_policies; // its row security applies
};

bool may_list(Relation rel, const RelationFacts* facts);
Reader reader_of(Relation rel);
void list_table(Relation rel, const RelationFacts* facts, Reader reader, ReturnSetInfo* output);
void warn_of(Relation rel, const ErrorData* error);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(list_row_locks);

Datum list_row_locks(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, marker_tables(MarkerTables::kEnabled)) {
        Relation rel = try_relation_open(lfirst_oid(cell), AccessShareLock);
        if (rel == nullptr)
            continue; // dropped meanwhile
        const RelationFacts* facts = facts_of(rel);
        Reader reader = reader_of(rel);
        if (facts->marker != nullptr && facts->marker->usable && may_list(rel, facts) &&
            OidIsValid(reader.user)) {
            ErrorData* error = attempt([&] {
                list_table(rel, facts, reader, output);
                close_new_cursors();
            });
            if (error != nullptr)
                warn_of(rel, error);
        }
        table_close(rel, AccessShareLock);
    }
    return 0;
}
}

namespace {

Bitmapset* columns_to_list(const RelationFacts* facts) {
    return bms_union(facts->marker->attnums, facts->key_columns);
}

bool may_list(Relation rel, const RelationFacts* facts) {
    return !RELATION_IS_OTHER_TEMP(rel) &&
           bms_is_subset(columns_to_list(facts), readable_columns(rel));
}

// One row of the result: rel, key, holder, locked_at, expires_at, reason, live.
void list_row(Relation rel, const RelationFacts* facts, HeapTuple tuple, ReturnSetInfo* output) {
    MarkerState state = marker_state(facts->marker, facts->columns, tuple, GetCurrentTimestamp());
    Datum values[7] = {ObjectIdGetDatum(RelationGetRelid(rel))};
    bool nulls[7] = {};
    nulls[1] = facts->key_count == 0;
    if (!nulls[1])
        values[1] = key_to_jsonb(facts, key_of_tuple(facts, tuple));
    nulls[2] = state.holder == nullptr;
    if (!nulls[2])
        values[2] = CStringGetTextDatum(state.holder);
    values[3] = TimestampTzGetDatum(state.since);
    nulls[3] = state.since == DT_NOBEGIN;
    values[4] = TimestampTzGetDatum(state.until);
    nulls[4] = state.until == DT_NOBEGIN;
    values[5] =
        heap_getattr(tuple, facts->marker->columns[kReason].attnum, facts->columns, &nulls[5]);
    values[6] = BoolGetDatum(state.live);
    tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
}

// The viewer may never have heard of the table, so nothing of it may run with his rights: neither
// the casts of its key types, nor the index and check expressions that planning evaluates. Its
// owner reads it past its policies, to show what the viewer may see when no policy applies to him.
// When one does it must be evaluated for him, and then only one of his own or a superuser's is.
Reader reader_of(Relation rel) {
    Oid owner = rel->rd_rel->relowner;
    if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) != RLS_ENABLED)
        return {owner, SECURITY_NOFORCE_RLS, false};
    if (owner == GetUserId() || superuser_arg(owner))
        return {GetUserId(), 0, true};
    return {InvalidOid, 0, true};
}

void write_list(Statement* statement, Relation rel, const RelationFacts* facts,
                const Bitmapset* columns) {
    const char* separator = "SELECT ";
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        statement->add("%st.%s", separator, quote_identifier(column_name(facts, column)));
        separator = ", ";
    }
    statement->add(" FROM %s t WHERE t.%s OPERATOR(pg_catalog.=) 1", qualified_name(rel),
                   quoted(facts->marker, kStatus));
}

void list_rows(Relation rel, const RelationFacts* facts, Reader reader, ReturnSetInfo* output) {
    StoredRow row = {};
    row.attnums = columns_to_list(facts);
    PlanShape shape = {RelationGetRelid(rel), PlanKind::kMarkerList};
    shape.subject = reader.has_policies ? 1 : 0;
    SPIPlanPtr plan = plan_of(
        shape, [&](Statement* statement) { write_list(statement, rel, facts, row.attnums); });
    uint64 count = run_plan(plan, Parameters(1));
    row.columns = SPI_tuptable->tupdesc;
    SPITupleTable* rows = SPI_tuptable;
    for (uint64 i = 0; i < count; i++) {
        row.tuple = rows->vals[i];
        list_row(rel, facts, stored_row_as_tuple(row, facts), output);
    }
}

void list_table(Relation rel, const RelationFacts* facts, Reader reader, ReturnSetInfo* output) {
    as_restricted(reader.user, reader.flags,
                  [&] { with_spi([&] { list_rows(rel, facts, reader, output); }); });
}

void warn_of(Relation rel, const ErrorData* error) {
    ereport(WARNING, (errcode(error->sqlerrcode),
                      errmsg("could not list every marker of \"%s\"", RelationGetRelationName(rel)),
                      errdetail("%s", error->message)));
}

} // namespace

namespace interlock {

List* marker_tables(MarkerTables which) {
    const char* condition = which == MarkerTables::kStored
                                ? "c.relkind OPERATOR(pg_catalog.=) 'r'"
                                : "t.tgparentid OPERATOR(pg_catalog.=) 0 AND "
                                  "pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')";
    List* tables = NIL;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        run_command(
            psprintf("SELECT t.tgrelid FROM pg_catalog.pg_trigger t "
                     "JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid "
                     "WHERE t.tgfoid OPERATOR(pg_catalog.=) "
                     "'interlock.marker_trigger()'::pg_catalog.regprocedure AND %s ORDER BY 1",
                     condition));
        in_context(caller, [&] {
            for (uint64 i = 0; i < SPI_processed; i++) {
                bool is_null;
                Datum oid =
                    SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &is_null);
                tables = lappend_oid(tables, DatumGetObjectId(oid));
            }
            return 0;
        });
    });
    return tables;
}

} // namespace interlock
