#include "execution/column_default.h"

#include "server/scope.h"
#include "table/relation_code.h"

namespace interlock::inline execution {

// The default of a column that is not named; cached with the metadata of the table.
struct ColumnDefault {
    bool known;
    bool plain;
    Node* value; // planned; null for null
};

static bool is_constant_call(const FuncExpr* call) {
    if (!is_built_in(call->funcid) || call->funcretset || call->funcvariadic)
        return false;
    ListCell* cell;
    foreach (cell, call->args)
        if (!IsA(lfirst(cell), Const))
            return false;
    return true;
}

static bool is_plain(const Node* value) {
    return value == nullptr || IsA(value, Const) || IsA(value, NextValueExpr) ||
           (IsA(value, FuncExpr) && is_constant_call(reinterpret_cast<const FuncExpr*>(value)));
}

static ColumnDefault load_default(Relation rel, Form_pg_attribute attribute) {
    if (attribute->attisdropped || attribute->attgenerated != '\0')
        return {true, true, nullptr};
    if (get_typtype(attribute->atttypid) == TYPTYPE_DOMAIN)
        return {true, false, nullptr};
    Node* value = build_column_default(rel, attribute->attnum);
    if (value != nullptr && calls_users_code(value)) // which planning may call once for all
        return {true, false, nullptr};
    if (value != nullptr)
        value = reinterpret_cast<Node*>(expression_planner(reinterpret_cast<Expr*>(value)));
    return {true, is_plain(value), value};
}

static const ColumnDefault& default_of(Relation rel, const TableInfo* info, int i) {
    ColumnDefault* known = &info->defaults[i];
    if (!known->known)
        *known = in_context(info->memory, [&] {
            return load_default(rel, TupleDescAttr(RelationGetDescr(rel), i));
        });
    return *known;
}

static NullableDatum next_value(const NextValueExpr* next) {
    int64 value = nextval_internal(next->seqid, false);
    switch (next->typeId) {
    case INT2OID:
        return {Int16GetDatum(static_cast<int16>(value)), false};
    case INT4OID:
        return {Int32GetDatum(static_cast<int32>(value)), false};
    default:
        return {Int64GetDatum(value), false};
    }
}

static NullableDatum evaluate(const Node* value) {
    if (value == nullptr)
        return {0, true};
    if (IsA(value, NextValueExpr))
        return next_value(reinterpret_cast<const NextValueExpr*>(value));
    if (IsA(value, FuncExpr))
        return call_with_constants(reinterpret_cast<const FuncExpr*>(value));
    const auto* constant = reinterpret_cast<const Const*>(value);
    return {constant->constvalue, constant->constisnull};
}

bool has_plain_defaults(Relation rel, const TableInfo* info, const Bitmapset* named) {
    int count = RelationGetDescr(rel)->natts;
    if (info->defaults == nullptr)
        info->defaults = static_cast<ColumnDefault*>(
            MemoryContextAllocZero(info->memory, sizeof(ColumnDefault) * Max(count, 1)));
    for (int i = 0; i < count; i++)
        if (!bms_is_member(i + 1, named) && !default_of(rel, info, i).plain)
            return false;
    return true;
}

void fill_defaults(const TableInfo* info, const Bitmapset* named, TupleTableSlot* row) {
    for (int i = 0; i < row->tts_tupleDescriptor->natts; i++) {
        if (bms_is_member(i + 1, named))
            continue;
        NullableDatum value = evaluate(info->defaults[i].value);
        row->tts_values[i] = value.value;
        row->tts_isnull[i] = value.isnull;
    }
}

NullableDatum call_with_constants(const FuncExpr* call) {
    AclResult allowed = check_function_privilege(call->funcid, GetUserId());
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(call->funcid));
    InvokeFunctionExecuteHook(call->funcid);
    FmgrInfo function;
    fmgr_info(call->funcid, &function);
    fmgr_info_set_expr(const_cast<Node*>(reinterpret_cast<const Node*>(call)), &function);
    LOCAL_FCINFO(info, FUNC_MAX_ARGS);
    InitFunctionCallInfoData(*info, &function, static_cast<int16>(list_length(call->args)),
                             call->inputcollid, nullptr, nullptr);
    int i = 0;
    ListCell* cell;
    foreach (cell, call->args) {
        const auto* constant = lfirst_node(Const, cell);
        if (constant->constisnull && function.fn_strict)
            return {0, true};
        info->args[i++] = {constant->constvalue, constant->constisnull};
    }
    Datum result = FunctionCallInvoke(info);
    return {result, info->isnull};
}

} // namespace interlock::inline execution
