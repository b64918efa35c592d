#include "history/table.h"

#include "execution/eligible.h"
#include "history/partition.h"
#include "server/scope.h"
#include "table/plan.h"
#include "table/relation_code.h"
#include "table/restricted.h"
#include "table/row.h"

namespace interlock::history {

const HistoryColumn history_columns[kEntryColumns] = {
    {{"id", INT8OID, true, ATTRIBUTE_IDENTITY_ALWAYS},
     "pg_catalog.int8 GENERATED ALWAYS AS IDENTITY"},
    {{"key", JSONBOID, true}, "pg_catalog.jsonb NOT NULL"},
    {{"version", INT8OID, false}, "pg_catalog.int8"},
    {{"changed_at", TIMESTAMPTZOID, true}, "pg_catalog.timestamptz NOT NULL"},
    {{"writer", TEXTOID, false}, "pg_catalog.text"},
    {{"changed_by", TEXTOID, true}, "pg_catalog.text NOT NULL"},
    {{"operation", TEXTOID, true}, "pg_catalog.text NOT NULL"},
    {{"row_data", JSONBOID, true}, "pg_catalog.jsonb NOT NULL"},
    {{"changed", TEXTARRAYOID, false}, "pg_catalog.text[]"},
    {{"before", JSONBOID, false}, "pg_catalog.jsonb"},
    {{"transaction", INT8OID, true}, "pg_catalog.int8 NOT NULL"},
    {{"command", INT8OID, true}, "pg_catalog.int8 NOT NULL"},
    {{"writer_from", TEXTOID, false}, "pg_catalog.text"},
    {{"context", JSONBOID, false}, "pg_catalog.jsonb"},
    {{"builds_on", INT8OID, false}, "pg_catalog.int8"},
    {{"distance", INT4OID, false}, "pg_catalog.int4"},
    {{"row_hash", INT8OID, false}, "pg_catalog.int8"}};

// Up to 16 a partition has no identity of its own.
static bool is_made_column(Relation rel, MadeColumn column, Form_pg_attribute attribute) {
    if (rel->rd_rel->relispartition)
        column.identity = attribute->attidentity;
    return is_unmodified(column, attribute);
}

bool has_made_columns(Relation rel) {
    TupleDesc columns = RelationGetDescr(rel);
    if (columns->natts < kEntryColumns)
        return false;
    for (int i = 0; i < kEntryColumns; i++)
        if (!is_made_column(rel, history_columns[i], TupleDescAttr(columns, i)))
            return false;
    return true;
}

bool has_history_columns(Relation rel) {
    return RelationGetNumberOfAttributes(rel) == kEntryColumns && has_made_columns(rel);
}

bool has_entry_columns(Relation rel) {
    TupleDesc columns = RelationGetDescr(rel);
    for (const HistoryColumn& made : history_columns) {
        AttrNumber column = find_attribute(columns, made.name);
        if (column == InvalidAttrNumber ||
            TupleDescAttr(columns, column - 1)->atttypid != made.type)
            return false;
    }
    return true;
}

static constexpr AttrNumber number_of(EntryColumn column) { return column + 1; }

// --- Whether entries can be written without a statement ------------------------------------------

static bool is_plain(Relation rel) {
    bool is_heap =
        rel->rd_rel->relkind == RELKIND_RELATION && rel->rd_rel->relam == HEAP_TABLE_AM_OID;
    return (is_heap || is_partitioned(rel)) && !inserting_runs_code(rel);
}

// The owner may have forbidden nulls where entries have some.
static bool takes_nulls(Relation rel) {
    for (int i = 0; i < kEntryColumns; i++)
        if (!history_columns[i].required && TupleDescAttr(RelationGetDescr(rel), i)->attnotnull)
            return false;
    return true;
}

static bool is_plain_btree(Relation index) {
    Form_pg_index form = index->rd_index;
    return index->rd_rel->relam == BTREE_AM_OID && form->indisvalid && form->indisready &&
           form->indimmediate && !form->indisexclusion &&
           heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr);
}

static bool is_integer_column(Relation index, int i, AttrNumber attnum) {
    return index->rd_index->indkey.values[i] == attnum &&
           index->rd_opfamily[i] == INTEGER_BTREE_FAM_OID;
}

// jsonb_hash_extended(key, 0)
static bool is_hash_of_key(const Node* expression) {
    if (!IsA(expression, FuncExpr))
        return false;
    auto* call = reinterpret_cast<const FuncExpr*>(expression);
    if (call->funcid != F_JSONB_HASH_EXTENDED || !IsA(linitial(call->args), Var) ||
        !IsA(lsecond(call->args), Const))
        return false;
    auto* key = static_cast<const Var*>(linitial(call->args));
    auto* seed = static_cast<const Const*>(lsecond(call->args));
    return key->varattno == number_of(kEntryKey) && !seed->constisnull &&
           DatumGetInt64(seed->constvalue) == 0;
}

// The primary key of a partition also has changed_at.
static bool is_index_of_ids(Relation index) {
    bool has_time = index->rd_index->indnatts == 2 &&
                    index->rd_index->indkey.values[1] == number_of(kEntryChangedAt) &&
                    index->rd_opcintype[1] == TIMESTAMPTZOID && is_built_in(index->rd_opfamily[1]);
    return (index->rd_index->indnatts == 1 || has_time) &&
           is_integer_column(index, 0, number_of(kEntryId));
}

static bool is_index_of_keys(Relation index, const IndexInfo* info) {
    return index->rd_index->indnatts == 2 && !index->rd_index->indisunique &&
           is_integer_column(index, 0, InvalidAttrNumber) &&
           is_integer_column(index, 1, number_of(kEntryId)) &&
           is_hash_of_key(static_cast<Node*>(linitial(info->ii_Expressions)));
}

static bool is_index_of_transactions(Relation index) {
    return index->rd_index->indnatts == 2 && !index->rd_index->indisunique &&
           is_integer_column(index, 0, number_of(kEntryTransaction)) &&
           is_integer_column(index, 1, number_of(kEntryId));
}

// False for any other index.
static bool find_leads(Relation index, const IndexInfo* info, HistoryIndex::Leads* leads) {
    bool has_key = is_index_of_keys(index, info);
    bool has_transaction = is_index_of_transactions(index);
    *leads = has_key           ? HistoryIndex::kKeyHash
             : has_transaction ? HistoryIndex::kTransaction
                               : HistoryIndex::kId;
    return has_key || has_transaction || is_index_of_ids(index);
}

static bool is_ascending(Relation index) {
    for (int i = 0; i < index->rd_index->indnkeyatts; i++)
        if (index->rd_indoption[i] != 0)
            return false;
    return true;
}

static bool load_index(HistoryTable* table, Oid oid) {
    Relation index = index_open(oid, AccessShareLock);
    bool is_known = false;
    if (is_plain_btree(index) && only_computes(index)) {
        IndexInfo* info = BuildIndexInfo(index);
        HistoryIndex::Leads leads;
        is_known = find_leads(index, info, &leads);
        table->indexes[table->index_count++] = {oid, info, leads};
    }
    index_close(index, AccessShareLock);
    return is_known;
}

static bool load_indexes(HistoryTable* table, Relation rel) {
    List* indexes = RelationGetIndexList(rel);
    if (list_length(indexes) > kHistoryIndexes)
        return false;
    ListCell* cell;
    foreach (cell, indexes)
        if (!load_index(table, lfirst_oid(cell)))
            return false;
    return true;
}

// --- Privileges ----------------------------------------------------------------------------------

static uint64 rights_changes = 1;

static void note_rights_change(Datum, CatalogCache, uint32) { rights_changes++; }

static void watch_rights() {
    static bool watched = false;
    if (watched)
        return;
    for (CatalogCache cache :
         {AUTHOID, AUTHMEMROLEMEM, NAMESPACEOID, DATABASEOID}) // pg_database_owner
        CacheRegisterSyscacheCallback(cache, note_rights_change, 0);
    watched = true;
}

// The privileges that the statement needs. Those on the table are part of them.
static bool owner_may_write(Relation rel, HistoryTable* table) {
    if (table->rights_of == rights_changes)
        return table->may_write;
    uint64 changes = rights_changes;
    Oid owner = rel->rd_rel->relowner;
    table->may_write = pg_class_aclcheck(RelationGetRelid(rel), owner, ACL_INSERT) == ACLCHECK_OK &&
                       check_schema_privilege(RelationGetNamespace(rel), owner) == ACLCHECK_OK;
    table->rights_of = changes;
    return table->may_write;
}

// --- Without a statement -------------------------------------------------------------------------

static void add_to_index(const HistoryIndex& entry, Relation rel, HeapTuple row,
                         const Datum* values) {
    Relation index = index_open(entry.oid, RowExclusiveLock);
    Datum keys[2] = {values[kEntryId], values[kEntryChangedAt]};
    bool nulls[2] = {};
    if (entry.leads != HistoryIndex::kId)
        keys[1] = values[kEntryId];
    if (entry.leads == HistoryIndex::kKeyHash)
        keys[0] = DirectFunctionCall2(jsonb_hash_extended, values[kEntryKey], Int64GetDatum(0));
    else if (entry.leads == HistoryIndex::kTransaction)
        keys[0] = values[kEntryTransaction];
    index_insert(index, keys, nulls, &row->t_self, rel,
                 index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false,
                 entry.info);
    index_close(index, NoLock);
}

// Not by insert_row: an entry has no key that the caller gives, no other transaction can insert the
// same one, and the table's definition is known, so that nothing is prepared for each row. Commands
// are counted as the statement counts them: readers order entries by them.
static void insert_directly(Relation rel, const HistoryTable* table, Oid sequence, Datum* values,
                            bool* nulls) {
    CommandCounterIncrement();
    values[kEntryId] = Int64GetDatum(nextval_internal(sequence, false));
    nulls[kEntryId] = false;
    HeapTuple row = heap_form_tuple(RelationGetDescr(rel), values, nulls);
    heap_insert(rel, row, GetCurrentCommandId(true), 0, nullptr);
    for (int i = 0; i < table->index_count; i++)
        add_to_index(table->indexes[i], rel, row, values);
    CommandCounterIncrement();
}

// --- With a statement ----------------------------------------------------------------------------

static void write_insert(Statement* statement, const char* table) {
    statement->add("INSERT INTO %s (", table);
    for (int i = kEntryId + 1; i < kEntryColumns; i++)
        statement->add("%s%s", i > kEntryId + 1 ? ", " : "",
                       quote_identifier(history_columns[i].name));
    statement->add(") VALUES (");
    for (int i = kEntryId + 1; i < kEntryColumns; i++)
        statement->add("%s$%d", i > kEntryId + 1 ? ", " : "",
                       statement->parameter(history_columns[i].type));
    statement->add(")");
}

static void insert_by_statement(Relation rel, const Datum* values, const bool* nulls) {
    TablePlan plan =
        plan_of({RelationGetRelid(rel), PlanKind("history_write")},
                [&](Statement* statement) { write_insert(statement, qualified_name(rel)); });
    Parameters parameters(kEntryColumns - 1);
    for (int i = kEntryId + 1; i < kEntryColumns; i++)
        parameters.add(values[i], nulls[i]);
    if (run_plan(plan, parameters) == 0)
        raise_suppressed(rel);
}

void load_history_table(TableInfo* info, Relation rel) {
    if (!has_history_columns(rel) || !is_plain(rel) || !takes_nulls(rel))
        return;
    auto* table = static_cast<HistoryTable*>(palloc0(sizeof(HistoryTable)));
    if (!rel->rd_rel->relispartition) {
        table->sequence = sequence_of_identity(rel, number_of(kEntryId));
        if (!OidIsValid(table->sequence))
            return;
    }
    if (!is_partitioned(rel) && !load_indexes(table, rel))
        return;
    watch_rights();
    info->facets[history_table_facet] = table;
}

static Oid sequence_of(const TableInfo* info) {
    const HistoryTable* table = history_table_of(info);
    return table != nullptr ? table->sequence : InvalidOid;
}

Relation open_history_index(Relation rel, HistoryIndex::Leads wanted) {
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        Relation index = index_open(lfirst_oid(cell), AccessShareLock);
        HistoryIndex::Leads leads;
        if (is_plain_btree(index) && !index->rd_index->indcheckxmin && only_computes(index) &&
            find_leads(index, BuildIndexInfo(index), &leads) && leads == wanted &&
            is_ascending(index))
            return index;
        index_close(index, NoLock);
    }
    return nullptr;
}

Relation open_index_of_keys(Relation rel) {
    const HistoryTable* table = history_table_of(table_info(rel));
    if (table == nullptr)
        return has_made_columns(rel) ? open_history_index(rel, HistoryIndex::kKeyHash) : nullptr;
    for (int i = 0; i < table->index_count; i++) {
        if (table->indexes[i].leads != HistoryIndex::kKeyHash)
            continue;
        Relation index = index_open(table->indexes[i].oid, AccessShareLock);
        if (is_ascending(index))
            return index;
        index_close(index, NoLock);
    }
    return nullptr;
}

// --- With the rights of the owner ----------------------------------------------------------------

namespace {

// Where an entry is written: in the table itself, or in one of its partitions.
struct Target {
    Relation rel;        // null: there is no partition for the entry
    HistoryTable* table; // null: the entry is written with a statement
};

} // namespace

static Target target_of(Relation rel, const TableInfo* info, const Datum* values) {
    if (!is_partitioned(rel))
        return {rel, OidIsValid(sequence_of(info)) ? history_table_of(info) : nullptr};
    Relation partition = open_partition(rel, DatumGetTimestampTz(values[kEntryChangedAt]));
    bool is_known =
        partition != nullptr && !is_partitioned(partition) && OidIsValid(sequence_of(info));
    return {partition, is_known ? history_table_of(table_info(partition)) : nullptr};
}

// Whether an INSERT of these values calls no code of other roles. All types must belong to the
// server, because a domain has checks, and another type may have casts.
static bool has_types_of_server(Relation rel) {
    for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++) {
        Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), i);
        if (!attribute->attisdropped && !is_built_in(attribute->atttypid))
            return false;
    }
    return true;
}

// A table with a known definition has only constraints of the extension.
static bool runs_no_code(Relation rel, const TableInfo* info, const Target& target) {
    if (target.table != nullptr)
        return true;
    return target.rel == rel && info->index_count <= kHistoryIndexes && !info->runs_code &&
           info->only_row_checks && has_types_of_server(rel);
}

static void write_as_owner(Relation rel, const TableInfo* info, const Target& target, Datum* values,
                           bool* nulls) {
    if (target.table != nullptr && session_is_eligible() &&
        owner_may_write(rel, history_table_of(info)))
        insert_directly(target.rel, target.table, sequence_of(info), values, nulls);
    else
        with_spi([&] { insert_by_statement(rel, values, nulls); });
}

void write_entry(Relation rel, Datum* values, bool* nulls) {
    const TableInfo* info = table_info(rel);
    Target target = target_of(rel, info, values);
    Oid user = GetUserId();
    auto insert = [&] {
        auto write = [&] { write_as_owner(rel, info, target, values, nulls); };
        if (target.table != nullptr || may_read_all(rel, user))
            write();
        else
            hiding_row(rel, write);
    };
    Oid owner = rel->rd_rel->relowner;
    if (runs_no_code(rel, info, target)) {
        as_user(owner, SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS, insert);
    } else {
        refuse_untrusted_triggers(rel, TRIGGER_TYPE_INSERT);
        if (target.rel != nullptr && target.rel != rel)
            require_trusted_partition(rel, target.rel, TRIGGER_TYPE_INSERT);
        as_restricted(owner, SECURITY_NOFORCE_RLS, insert);
    }
    if (target.rel != nullptr && target.rel != rel)
        table_close(target.rel, NoLock);
    table_close(rel, NoLock);
}

} // namespace interlock::history
