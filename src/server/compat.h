// The differences between the server versions: no other file tests PG_VERSION_NUM. Each wrapper
// names the major that changed and why. Only server/server.h includes this file.
#pragma once

#if PG_VERSION_NUM < 150000
#error "pg_interlock needs PostgreSQL 15 or later"
#endif

namespace interlock::inline server {

// 16 replaced the per-catalog privilege checks by object_ownercheck and object_aclcheck.
inline bool owns_relation(Oid relid, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(RelationRelationId, relid, role);
#else
    return pg_class_ownercheck(relid, role);
#endif
}

// 16 has subscriptions that write as the owner of the table.
inline bool writes_as_its_owner([[maybe_unused]] const FormData_pg_subscription* subscription) {
#if PG_VERSION_NUM >= 160000
    return subscription->subrunasowner;
#else
    return true;
#endif
}

// 16 lets a role be a member that may not SET ROLE.
inline bool may_become(Oid member, Oid role) {
#if PG_VERSION_NUM >= 160000
    return member_can_set_role(member, role);
#else
    return is_member_of_role(member, role);
#endif
}

inline AclResult check_function_privilege(Oid function, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE);
#else
    return pg_proc_aclcheck(function, role, ACL_EXECUTE);
#endif
}

inline AclResult check_schema_privilege(Oid schema, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(NamespaceRelationId, schema, role, ACL_USAGE);
#else
    return pg_namespace_aclcheck(schema, role, ACL_USAGE);
#endif
}

// 16 renamed the counters of a database's statistics entry.
inline PgStat_Counter rows_written(const PgStat_StatDBEntry* entry) {
#if PG_VERSION_NUM >= 160000
    return entry->tuples_inserted + entry->tuples_updated;
#else
    return entry->n_tuples_inserted + entry->n_tuples_updated;
#endif
}

// 16 added a place for soft errors to the rounding of a timestamp.
inline void round_timestamp(Timestamp* time, int32 typmod) {
#if PG_VERSION_NUM >= 160000
    AdjustTimestampForTypmod(time, typmod, nullptr);
#else
    AdjustTimestampForTypmod(time, typmod);
#endif
}

// 17 can also check for a stronger mode.
inline bool holds_lock(const LOCKTAG* tag, LOCKMODE mode) {
#if PG_VERSION_NUM >= 170000
    return LockHeldByMe(tag, mode, false);
#else
    return LockHeldByMe(tag, mode);
#endif
}

// The minor releases of 2025 have flags for this.
inline bool has_synchronous_standbys() {
#ifdef SYNC_STANDBY_DEFINED
    return (WalSndCtl->sync_standbys_status & SYNC_STANDBY_DEFINED) != 0;
#else
    return WalSndCtl->sync_standbys_defined;
#endif
}

// Whether this transaction truncated a table that existed before it. 16 renamed the member.
inline bool was_truncated(Relation rel) {
#if PG_VERSION_NUM >= 160000
    SubTransactionId storage = rel->rd_firstRelfilelocatorSubid;
#else
    SubTransactionId storage = rel->rd_firstRelfilenodeSubid;
#endif
    return rel->rd_createSubid == InvalidSubTransactionId && storage != InvalidSubTransactionId;
}

// 17 has a separate variable for the number of the process.
inline int number_of_process() {
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyProc->pgprocno;
#endif
}

// The caller holds XactTruncationLock. 17 renamed the variable.
inline TransactionId oldest_in_commit_log() {
#if PG_VERSION_NUM >= 170000
    return TransamVariables->oldestClogXid;
#else
    return ShmemVariableCache->oldestClogXid;
#endif
}

// 17 moved the number of the transaction.
inline LocalTransactionId local_transaction() {
#if PG_VERSION_NUM >= 170000
    return MyProc->vxid.lxid;
#else
    return MyProc->lxid;
#endif
}

// Whether two locks belong to one transaction. 17 renamed the members.
inline bool has_same_transaction(const LockInstanceData& left, const LockInstanceData& right) {
#if PG_VERSION_NUM >= 170000
    return left.vxid.procNumber == right.vxid.procNumber &&
           left.vxid.localTransactionId == right.vxid.localTransactionId;
#else
    return left.backend == right.backend && left.lxid == right.lxid;
#endif
}

// 17 lets an extension name its wait events. Before 17 they are all called "Extension".
inline uint32 named_wait_event([[maybe_unused]] const char* name) {
#if PG_VERSION_NUM >= 170000
    return WaitEventExtensionNew(name);
#else
    return PG_WAIT_EXTENSION;
#endif
}

// Makes the server count the rows of the node, as for EXPLAIN. 19 gave nodes a separate struct.
inline void count_rows_of(PlanState* node) {
#if PG_VERSION_NUM >= 190000
    node->instrument = InstrAllocNode(INSTRUMENT_ROWS, false);
#else
    node->instrument = InstrAlloc(1, INSTRUMENT_ROWS, false);
#endif
}

// 18 counts the pages of an index scan for EXPLAIN. 19 takes flags of the table scan.
inline IndexScanDesc begin_index_scan(Relation rel, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 190000
    return index_beginscan(rel, index, snapshot, nullptr, keys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
    return index_beginscan(rel, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(rel, index, snapshot, keys, 0);
#endif
}

// Declares that the statement of `estate` inserts or updates these columns of its one table.
// Columns are offset by FirstLowInvalidHeapAttributeNumber. 16 moved the columns from the range
// table to a separate list. 18 also needs to know which tables are not pruned.
inline void set_changed_columns(EState* estate, RangeTblEntry* table, Bitmapset* inserted,
                                Bitmapset* updated) {
#if PG_VERSION_NUM >= 160000
    auto* permissions = makeNode(RTEPermissionInfo);
    permissions->relid = table->relid;
    permissions->insertedCols = inserted;
    permissions->updatedCols = updated;
    table->perminfoindex = 1;
#if PG_VERSION_NUM >= 180000
    ExecInitRangeTable(estate, list_make1(table), list_make1(permissions), bms_make_singleton(1));
#else
    ExecInitRangeTable(estate, list_make1(table), list_make1(permissions));
#endif
#else
    table->insertedCols = inserted;
    table->updatedCols = updated;
    ExecInitRangeTable(estate, list_make1(table));
#endif
}

// 16 added the list of result relations.
inline void begin_recheck(EPQState* recheck, EState* estate) {
#if PG_VERSION_NUM >= 160000
    EvalPlanQualInit(recheck, estate, nullptr, NIL, -1, NIL);
#else
    EvalPlanQualInit(recheck, estate, nullptr, NIL, -1);
#endif
}

// 16 added the result. 18 added whether a MERGE updates.
inline bool fire_before_update(EState* estate, EPQState* recheck, ResultRelInfo* target,
                               ItemPointer row, TupleTableSlot* new_row) {
    TM_FailureData failure;
#if PG_VERSION_NUM >= 160000
    TM_Result result;
#endif
#if PG_VERSION_NUM >= 180000
    return ExecBRUpdateTriggers(estate, recheck, target, row, nullptr, new_row, &result, &failure,
                                false);
#elif PG_VERSION_NUM >= 160000
    return ExecBRUpdateTriggers(estate, recheck, target, row, nullptr, new_row, &result, &failure);
#else
    return ExecBRUpdateTriggers(estate, recheck, target, row, nullptr, new_row, &failure);
#endif
}

// 16 distinguishes indexes that only summarize from the others.
#if PG_VERSION_NUM >= 160000
using IndexesToUpdate = TU_UpdateIndexes;
constexpr IndexesToUpdate kNoIndexes = TU_None;
#else
using IndexesToUpdate = bool;
constexpr IndexesToUpdate kNoIndexes = false;
#endif

// 19 turned the booleans into flags.
inline List* insert_index_entries(ResultRelInfo* target, EState* estate, TupleTableSlot* row,
                                  [[maybe_unused]] IndexesToUpdate indexes) {
#if PG_VERSION_NUM >= 190000
    uint32 flags = EIIT_IS_UPDATE | (indexes == TU_Summarizing ? EIIT_ONLY_SUMMARIZING : 0);
    return ExecInsertIndexTuples(target, estate, flags, row, NIL, nullptr);
#elif PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(target, row, estate, true, false, nullptr, NIL,
                                 indexes == TU_Summarizing);
#else
    return ExecInsertIndexTuples(target, row, estate, true, false, nullptr, NIL);
#endif
}

// 17 takes the table instead of its OID. Returns InvalidOid if the column is no identity column.
inline Oid sequence_of_identity(Relation rel, AttrNumber column) {
#if PG_VERSION_NUM >= 170000
    return getIdentitySequence(rel, column, true);
#else
    return getIdentitySequence(RelationGetRelid(rel), column, true);
#endif
}

// Where the executor keeps the states of a table's checks. 18 renamed it.
inline ExprState**& check_states(ResultRelInfo* target) {
#if PG_VERSION_NUM >= 180000
    return target->ri_CheckConstraintExprs;
#else
    return target->ri_ConstraintExprs;
#endif
}

// 18 has checks that are not enforced.
inline bool is_enforced([[maybe_unused]] const ConstrCheck& check) {
#if PG_VERSION_NUM >= 180000
    return check.ccenforced;
#else
    return true;
#endif
}

// For a new row. With arbiters it sets `conflict` if an arbiter may have the key already, and
// raises nothing. 16 added what an update needs.
inline List* insert_index_entries(ResultRelInfo* target, EState* estate, TupleTableSlot* row,
                                  List* arbiters, bool* conflict) {
#if PG_VERSION_NUM >= 190000
    uint32 flags = arbiters != NIL ? EIIT_NO_DUPE_ERROR : 0;
    return ExecInsertIndexTuples(target, estate, flags, row, arbiters, conflict);
#elif PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(target, row, estate, false, arbiters != NIL, conflict, arbiters,
                                 false);
#else
    return ExecInsertIndexTuples(target, row, estate, false, arbiters != NIL, conflict, arbiters);
#endif
}

// Whether there is a row with the key of an arbiter. Waits for transactions that may insert or
// delete such a row. 18 can leave out one row.
inline bool has_conflict(ResultRelInfo* target, EState* estate, TupleTableSlot* row,
                         List* arbiters) {
    ItemPointerData place;
#if PG_VERSION_NUM >= 180000
    ItemPointerData none;
    ItemPointerSetInvalid(&none);
    return !ExecCheckIndexConstraints(target, row, estate, &place, &none, arbiters);
#else
    return !ExecCheckIndexConstraints(target, row, estate, &place, arbiters);
#endif
}

// 16 declares the arguments of a walker.
inline bool walk_expression(Node* node, bool (*visit)(Node*, void*), void* context) {
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, visit, context);
#else
    return expression_tree_walker(
        node, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(visit)), context);
#endif
}

// 18 has foreign keys with a period. Such a key references several rows.
inline bool is_of_period([[maybe_unused]] const FormData_pg_constraint* constraint) {
#if PG_VERSION_NUM >= 180000
    return constraint->conperiod;
#else
    return false;
#endif
}

// Calls the input function of a type without modifier. From 16 on an input function can report bad
// input to its caller instead of raising an error: then this returns false.
inline bool read_or_report(PGFunction input, char* text, Node* context, Datum* value) {
#if PG_VERSION_NUM >= 160000
    return DirectInputFunctionCallSafe(input, text, InvalidOid, -1, context, value);
#else
    (void)context;
    *value = DirectFunctionCall3(input, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
                                 Int32GetDatum(-1));
    return true;
#endif
}

// 16 has SQL/JSON constructors, and 17 has queries. They call functions of types that no node
// names: casts to json, and the checks of a returned domain.
inline bool is_json_expression([[maybe_unused]] const Node* node) {
#if PG_VERSION_NUM >= 170000
    if (IsA(node, JsonExpr))
        return true;
#endif
#if PG_VERSION_NUM >= 160000
    return IsA(node, JsonConstructorExpr) || IsA(node, JsonValueExpr);
#else
    return false;
#endif
}

// 16 declares the arguments of this walker too.
inline bool walk_query(Query* query, bool (*visit)(Node*, void*), void* context, int flags) {
#if PG_VERSION_NUM >= 160000
    return query_tree_walker(query, visit, context, flags);
#else
    return query_tree_walker(query, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(visit)),
                             context, flags);
#endif
}
inline bool walk_plan_state(PlanState* state, bool (*visit)(PlanState*, void*), void* context) {
#if PG_VERSION_NUM >= 160000
    return planstate_tree_walker(state, visit, context);
#else
    return planstate_tree_walker(
        state, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(visit)), context);
#endif
}

// The condition that joins the source of a MERGE with its target. 17 moved it out of the join tree.
inline Node* merge_condition(const Query* query) {
#if PG_VERSION_NUM >= 170000
    return query->mergeJoinCondition;
#else
    return query->jointree->quals;
#endif
}

// Whether the action is for rows that meet that condition. 17 also has actions for other rows.
inline bool is_for_matched(const MergeAction* action) {
#if PG_VERSION_NUM >= 170000
    return action->matchKind == MERGE_WHEN_MATCHED;
#else
    return action->matched;
#endif
}

// Whether no row has a null there. 18 has NOT NULL constraints that older rows need not meet.
inline bool has_no_nulls(TupleDesc columns, AttrNumber attnum) {
#if PG_VERSION_NUM >= 180000
    if (TupleDescCompactAttr(columns, attnum - 1)->attnullability == ATTNULLABLE_INVALID)
        return false;
#endif
    return TupleDescAttr(columns, attnum - 1)->attnotnull;
}

// 18 has generated columns that are not stored.
inline bool has_virtual_columns([[maybe_unused]] TupleDesc columns) {
#if PG_VERSION_NUM >= 180000
    return columns->constr != nullptr && columns->constr->has_generated_virtual;
#else
    return false;
#endif
}

// 19 takes flags of the scan.
inline TableScanDesc begin_table_scan(Relation rel, Snapshot snapshot) {
#if PG_VERSION_NUM >= 190000
    return table_beginscan(rel, snapshot, 0, nullptr, SO_NONE);
#else
    return table_beginscan(rel, snapshot, 0, nullptr);
#endif
}

// Also waits for a transaction that writes the row. 19 takes options.
inline TM_Result update_tuple(Relation rel, ItemPointer place, TupleTableSlot* row,
                              CommandId command, Snapshot snapshot, TM_FailureData* failure,
                              LockTupleMode* mode, IndexesToUpdate* indexes) {
#if PG_VERSION_NUM >= 190000
    return table_tuple_update(rel, place, row, command, 0, snapshot, InvalidSnapshot, true, failure,
                              mode, indexes);
#else
    return table_tuple_update(rel, place, row, command, snapshot, InvalidSnapshot, true, failure,
                              mode, indexes);
#endif
}
inline TM_Result delete_tuple(Relation rel, ItemPointer place, CommandId command,
                              TM_FailureData* failure) {
#if PG_VERSION_NUM >= 190000
    return heap_delete(rel, place, command, 0, InvalidSnapshot, true, failure);
#else
    return heap_delete(rel, place, command, InvalidSnapshot, true, failure, false);
#endif
}

// 19 names the type that numbers the caches of the catalog.
#if PG_VERSION_NUM >= 190000
using CatalogCache = SysCacheIdentifier;
#else
using CatalogCache = int;
#endif

// 19 reserves room for all entries at once.
inline HTAB* shared_hash(const char* name, int entries, HASHCTL* control, int flags) {
#if PG_VERSION_NUM >= 190000
    return ShmemInitHash(name, entries, control, flags);
#else
    return ShmemInitHash(name, entries, entries, control, flags);
#endif
}

// 19 keeps the unfinished value in the state.
#if PG_VERSION_NUM < 190000
struct JsonbInState {
    JsonbValue* result;
    JsonbParseState* parseState;
};
inline void pushJsonbValue(JsonbInState* state, JsonbIteratorToken token, JsonbValue* value) {
    state->result = ::pushJsonbValue(&state->parseState, token, value);
}
#endif

// Returns false if the time zone of the session moves the time out of the range. 19 reports that as
// a soft error.
inline bool to_timestamptz(Timestamp time, TimestampTz* result) {
#if PG_VERSION_NUM >= 190000
    ErrorSaveContext errors = {};
    errors.type = T_ErrorSaveContext;
    *result = timestamp2timestamptz_safe(time, reinterpret_cast<Node*>(&errors));
    return !errors.error_occurred;
#else
    int overflow = 0;
    *result = timestamp2timestamptz_opt_overflow(time, &overflow);
    return overflow == 0;
#endif
}

} // namespace interlock::inline server

// The arguments of a planner hook. 19 added an argument for EXPLAIN.
#if PG_VERSION_NUM >= 190000
#define INTERLOCK_PLANNER_ARGUMENTS \
    Query *query, const char *text, int options, ParamListInfo parameters, ExplainState *explain
#define INTERLOCK_PLANNER_PASSED query, text, options, parameters, explain
#else
#define INTERLOCK_PLANNER_ARGUMENTS \
    Query *query, const char *text, int options, ParamListInfo parameters
#define INTERLOCK_PLANNER_PASSED query, text, options, parameters
#endif

// 18 lets a module state its name and version.
#if PG_VERSION_NUM >= 180000
#define INTERLOCK_MODULE_MAGIC \
    PG_MODULE_MAGIC_EXT(.name = "pg_interlock", .version = INTERLOCK_VERSION)
#else
#define INTERLOCK_MODULE_MAGIC PG_MODULE_MAGIC
#endif

// The arguments of an ExecutorRun hook. 18 dropped the last one.
#if PG_VERSION_NUM >= 180000
#define INTERLOCK_EXECUTOR_RUN_ARGUMENTS QueryDesc *query, ScanDirection direction, uint64 count
#define INTERLOCK_EXECUTOR_RUN_PASSED query, direction, count
#else
#define INTERLOCK_EXECUTOR_RUN_ARGUMENTS \
    QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define INTERLOCK_EXECUTOR_RUN_PASSED query, direction, count, once
#endif

// 16 declares what a module defines.
#if PG_VERSION_NUM < 160000
extern "C" PGDLLEXPORT void _PG_init(void);
#endif
