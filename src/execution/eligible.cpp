#include "execution/eligible.h"

#include "execution/column_default.h"
#include "execution/row_insert.h"
#include "execution/row_write.h"
#include "table/relation_code.h"

namespace interlock::inline execution {

static bool direct_execution = true;

// --- The caller -------------------------------------------------------------------------------

// ExecCheckRTPerms (ExecCheckPermissions since 16) asks for the privilege on the table first, and
// for that on each column where it is missing. A privilege on the table
// covers its columns. Other callers are left to the statement, which also raises the error.
static bool has_table_privileges(const TableInfo* info, AclMode needed) {
    return pg_class_aclmask(info->relid, GetUserId(), needed, ACLMASK_ALL) == needed;
}

// The statement finds the table by its schema (RangeVarGetRelid, LookupExplicitNamespace), a
// function by its oid.
static bool may_use_schema(Relation rel) {
    return check_schema_privilege(RelationGetNamespace(rel), GetUserId()) == ACLCHECK_OK;
}

// Nor may a key be compared by a function that the caller may not execute (ExecInitFunc), or that
// is not the server's own, which may do anything.
static bool may_compare_keys(const UniqueKey& by) {
    for (int i = 0; i < by.count; i++) {
        Oid equal = by.columns[i].equal.fn_oid;
        if (!is_built_in(equal) || check_function_privilege(equal, GetUserId()) != ACLCHECK_OK)
            return false;
    }
    return true;
}

// For a table of the extension that its owner has altered, columns are numbered as in the original
// (unmodified_info), which are not the numbers of the metadata.
static bool has_its_columns(const TableInfo* info) { return info->unmodified != Unmodified::kNo; }

// Policies are expressions of their owner's, which the rewriter adds to the statement
// (get_row_security_policies).
static bool sees_all_rows(Relation rel) {
    return !rel->rd_rel->relrowsecurity ||
           check_enable_rls(RelationGetRelid(rel), InvalidOid, true) != RLS_ENABLED;
}

static bool may_act_on(Relation rel, const TableInfo* info, const UniqueKey& by, AclMode needed) {
    return transaction_is_eligible() && has_its_columns(info) && table_is_eligible(rel, info) &&
           has_table_privileges(info, needed) && may_use_schema(rel) && may_compare_keys(by) &&
           sees_all_rows(rel);
}

// --- Reading ----------------------------------------------------------------------------------

// A lock needs UPDATE on some column; UPDATE on the whole table includes that.
static AclMode rights_to_read(RowLock lock) {
    return lock.strength == RowStrength::kNone ? ACL_SELECT : ACL_SELECT | ACL_UPDATE;
}

// --- Triggers of statements -------------------------------------------------------------------

// ExecModifyTable fires them around the rows (fireBSTriggers, fireASTriggers), and collects the
// rows for transition tables (ExecSetupTransitionCaptureState): neither is imitated here.
static bool has_no_update_statement_triggers(Relation rel) {
    const TriggerDesc* triggers = rel->trigdesc;
    return triggers == nullptr ||
           !(triggers->trig_update_before_statement || triggers->trig_update_after_statement ||
             triggers->trig_update_old_table || triggers->trig_update_new_table);
}

static bool has_no_insert_statement_triggers(Relation rel) {
    const TriggerDesc* triggers = rel->trigdesc;
    return triggers == nullptr ||
           !(triggers->trig_insert_before_statement || triggers->trig_insert_after_statement ||
             triggers->trig_insert_new_table);
}

// --- Inserting --------------------------------------------------------------------------------

// Whether transformAssignedExpr would leave the value alone. A domain would check it, a length cut
// it, and rewriteTargetListIU replaces or refuses what is generated.
static bool is_stored_as_given(TupleDesc columns, const NamedValue& value) {
    Form_pg_attribute attribute = TupleDescAttr(columns, value.attnum - 1);
    return attribute->atttypid == value.type && attribute->atttypmod < 0 &&
           !attribute->attisdropped && attribute->attgenerated == '\0' &&
           attribute->attidentity != ATTRIBUTE_IDENTITY_ALWAYS;
}

static bool are_stored_as_given(const RowInsert& insert) {
    for (int i = 0; i < insert.count; i++)
        if (!is_stored_as_given(RelationGetDescr(insert.rel), insert.values[i]))
            return false;
    return true;
}

// ON CONFLICT looks at every index that fits its columns (infer_arbiter_indexes), so there must be
// no other.
static bool knows_arbiters(const RowInsert& insert) {
    return OidIsValid(arbiter_of(insert).index) && insert.info->unique_count == 1;
}

// --- What a write says ------------------------------------------------------------------------

// A statement checks EXECUTE on its operators' functions (ExecInitFunc). For those of pg_catalog on
// numbers, times and texts it is assumed; for another type it is checked.
static bool may_call(const FmgrInfo& function) {
    return check_function_privilege(function.fn_oid, GetUserId()) == ACLCHECK_OK;
}

// For texts whose collation is not deterministic texteq calls the collation's provider
// (varstr_cmp). No difference is known; its warnings and errors are left to the statement.
static bool compares_bytes(Oid collation) {
    return !OidIsValid(collation) || collation == DEFAULT_COLLATION_OID ||
           collation == C_COLLATION_OID || get_collation_isdeterministic(collation);
}

static bool may_compare(const Expressions& terms) {
    if (!terms.compares_otherwise())
        return true;
    for (int i = 0; i < terms.count(); i++) {
        const Expression& term = terms[i];
        if (term.term == Term::kSame && !may_call(*term.equal))
            return false;
        if (term.term == Term::kEqual && !compares_bytes(term.collation))
            return false;
    }
    return true;
}

// Not a value that the statement would convert in a way that assigned_value() does not know, nor a
// column that rewriteTargetListIU refuses.
static bool may_assign(const RowWrite& write) {
    TupleDesc columns = RelationGetDescr(write.row.rel);
    for (int i = 0; i < write.assignment_count; i++) {
        const Assignment& assignment = write.assignments[i];
        Form_pg_attribute column = TupleDescAttr(columns, assignment.column - 1);
        if (column->attidentity == ATTRIBUTE_IDENTITY_ALWAYS ||
            (assignment.value != nullptr && !can_assign(column, *assignment.value)))
            return false;
    }
    return true;
}

bool session_is_eligible() {
    return direct_execution &&
           // ExecCheckXactReadOnly and PreventCommandIfParallelMode raise the errors.
           !XactReadOnly && !IsInParallelMode() &&
           // A module that checks privileges itself looks at the statement's range table.
           ExecutorCheckPerms_hook == nullptr;
}

// Above READ COMMITTED a row that is newer than the snapshot raises 40001, and SERIALIZABLE notes
// what is read (PredicateLockTID): the statement does both.
bool transaction_is_eligible() { return session_is_eligible() && !IsolationUsesXactSnapshot(); }

// CREATE INDEX, REINDEX and CLUSTER call the functions of an index's expressions while it is being
// built, which would then have two versions of a row. For a statement the planner opens that index,
// and raises the error. They have the table open, as CheckTableNotInUse() asks.
static bool may_be_indexed_now(Relation rel) {
    return InSecurityRestrictedOperation() && rel->rd_refcnt > 1 &&
           CheckRelationLockedByMe(rel, ShareUpdateExclusiveLock, true);
}

bool table_is_eligible(Relation rel, const TableInfo* info) {
    return rel->rd_rel->relkind == RELKIND_RELATION &&
           // Its rows are elsewhere; the planner of Citus sends a statement there.
           info->distribution == Distribution::kNone &&
           // A subtransaction that was rolled back leaves the relation cache as it was there, until
           // a statement opens the table (RelationClearRelation).
           rel->rd_isvalid &&
           // This code uses heap tuples and their headers.
           rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
           // ExecUpdate checks the partition's constraint and moves the row to another one; a
           // statement on the parent has routed it here.
           !rel->rd_rel->relispartition &&
           // With ONLY no difference is known for the parent of other tables; not supported.
           !rel->rd_rel->relhassubclass &&
           // The rewriter replaces the statement.
           rel->rd_rules == nullptr &&
           // The planner replaces them by their expressions; a slot has null there.
           !has_virtual_columns(RelationGetDescr(rel)) && !may_be_indexed_now(rel);
}

bool may_read_without_statement(Relation rel, const TableInfo* info, const UniqueKey& by,
                                RowLock lock) {
    return may_act_on(rel, info, by, rights_to_read(lock));
}

bool may_update_without_statement(const KeyedRow& row) {
    return has_no_update_statement_triggers(row.rel) &&
           may_act_on(row.rel, row.info, *row.key->by, ACL_SELECT | ACL_UPDATE);
}

bool may_insert_without_statement(const RowInsert& insert, const Bitmapset* named) {
    return has_its_columns(insert.info) && has_no_insert_statement_triggers(insert.rel) &&
           are_stored_as_given(insert) && knows_arbiters(insert) &&
           may_act_on(insert.rel, insert.info, arbiter_of(insert), ACL_INSERT | ACL_SELECT) &&
           // A default may be any expression, which the planner would have to prepare.
           has_plain_defaults(insert.rel, insert.info, named);
}

bool is_said_without_statement(const RowWrite& write) {
    // ExecDelete is not imitated here.
    return write.action == RowAction::kUpdate && has_its_columns(write.row.info) &&
           may_assign(write) && may_compare(write.terms);
}

void define_direct_settings() {
    DefineCustomBoolVariable(
        "interlock.direct_execution",
        "Reads, locks and writes a row without a statement where that is the same.", nullptr,
        &direct_execution, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
}

} // namespace interlock::inline execution
