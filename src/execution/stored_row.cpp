#include "execution/stored_row.h"

#include "execution/read.h"
#include "server/scope.h"
#include "table/row_json.h"

namespace interlock {

namespace {

void write_read_statement(Statement* statement, Relation rel, const RelationFacts* facts,
                          const Bitmapset* columns, RowLock lock) {
    const char* separator = "SELECT ";
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        statement->add("%st.%s", separator, quote_identifier(column_name(facts, column)));
        separator = ", ";
    }
    statement->add(" FROM %s t WHERE ", rows_of(rel));
    add_key_condition(statement, facts);
    add_row_lock(statement, lock);
}

// The columns of a row of the table, as a SELECT of them returns it.
void select_columns(StoredRow* row, TupleTableSlot* version) {
    int count = bms_num_members(row->attnums);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * (count + 1)));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * (count + 1)));
    row->columns = CreateTemplateTupleDesc(count);
    int i = 0;
    for (int column = -1; (column = bms_next_member(row->attnums, column)) >= 0; i++) {
        TupleDescCopyEntry(row->columns, i + 1, version->tts_tupleDescriptor, column);
        values[i] = slot_getattr(version, column, &nulls[i]);
    }
    row->tuple = heap_form_tuple(row->columns, values, nulls);
    row->found = true;
}

} // namespace

StoredRow read_row(Relation rel, const RelationFacts* facts, const Key& key,
                   const Bitmapset* columns, RowLock lock) {
    StoredRow row = {};
    row.attnums = columns;
    DirectOutcome direct = read_directly(
        {rel, facts, &key}, lock, [&](TupleTableSlot* version) { select_columns(&row, version); });
    if (direct != DirectOutcome::kDeclined)
        return row;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        PlanShape shape = {RelationGetRelid(rel), PlanKind::kReadRow, columns};
        shape.subject = row_lock_number(lock);
        SPIPlanPtr plan = plan_of(shape, [&](Statement* statement) {
            write_read_statement(statement, rel, facts, columns, lock);
        });
        Parameters parameters(facts->key_count);
        add_key(&parameters, facts, key);
        if (run_plan(plan, parameters, 1) == 0)
            return;
        row.found = true;
        row.tuple = SPI_copytuple(SPI_tuptable->vals[0]);
        row.columns = in_context(caller, [] { return CreateTupleDescCopy(SPI_tuptable->tupdesc); });
    });
    return row;
}

Datum stored_value(const StoredRow& row, AttrNumber attnum, bool* is_null) {
    int position = 1;
    for (int column = -1; (column = bms_next_member(row.attnums, column)) >= 0; position++)
        if (column == attnum)
            return heap_getattr(row.tuple, position, row.columns, is_null);
    elog(ERROR, "column %d was not read", attnum);
    pg_unreachable();
}

Datum stored_row_to_jsonb(const StoredRow& row) { return row_to_jsonb(row.columns, row.tuple); }

HeapTuple stored_row_as_tuple(const StoredRow& row, const RelationFacts* facts) {
    int count = facts->columns->natts;
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    memset(nulls, true, count);
    int position = 1;
    for (int column = -1; (column = bms_next_member(row.attnums, column)) >= 0; position++)
        values[column - 1] = heap_getattr(row.tuple, position, row.columns, &nulls[column - 1]);
    return heap_form_tuple(facts->columns, values, nulls);
}

} // namespace interlock
