#include "transition/guard.h"

#include "server/scope.h"
#include "table/settings_json.h"
#include "transition/text.h"
#include "transition/transition.h"

namespace interlock::transition {

// --- Reading -----------------------------------------------------------------------------------

namespace {

struct Functions {
    MemoryContext memory; // of the guards
    Guard* first;
    int count;
};

} // namespace

static bool is_true(const Node* node) {
    if (!IsA(node, Const))
        return false;
    const auto* constant = reinterpret_cast<const Const*>(node);
    return constant->consttype == BOOLOID && !constant->constisnull &&
           DatumGetBool(constant->constvalue);
}

// As it is stored; the numbers of guards have four digits at most (transition/text.h).
constexpr size_t kMostConditionBytes = 16 * kMostTransitionBytes;

// f(OLD.*, OLD.*) IS NULL
static bool read_function(const Node* node, Guard* guard) {
    if (!IsA(node, NullTest))
        return false;
    const auto* test = reinterpret_cast<const NullTest*>(node);
    if (test->nulltesttype != IS_NULL || !IsA(test->arg, FuncExpr))
        return false;
    return describe_guard(reinterpret_cast<const FuncExpr*>(test->arg)->funcid, guard);
}

// true OR f(OLD.*, OLD.*) IS NULL OR ...
static bool read_condition(const char* text, Functions* functions) {
    const auto* node = static_cast<const Node*>(stringToNode(text));
    if (!IsA(node, BoolExpr))
        return false;
    const auto* condition = reinterpret_cast<const BoolExpr*>(node);
    if (condition->boolop != OR_EXPR || !is_true(static_cast<Node*>(linitial(condition->args))))
        return false;
    int count = list_length(condition->args) - 1;
    functions->first =
        static_cast<Guard*>(MemoryContextAlloc(functions->memory, sizeof(Guard) * count));
    for (; functions->count < count; functions->count++)
        if (!read_function(static_cast<Node*>(list_nth(condition->args, functions->count + 1)),
                           &functions->first[functions->count]))
            return false;
    return true;
}

static bool is_row_of(Oid row_type, Oid relid, bool is_clone) {
    Oid table = get_typ_typrelid(row_type);
    return table == relid || (is_clone && list_member_oid(get_partition_ancestors(relid), table));
}

static bool numbers_fit(Jsonb* guarded, int count) {
    JsonbIterator* iterator = JsonbIteratorInit(&guarded->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;)
        if (token == WJB_VALUE && value.type == jbvNumeric &&
            DatumGetInt32(DirectFunctionCall1(numeric_int4, NumericGetDatum(value.val.numeric))) >=
                count)
            return false;
    return true;
}

bool describe_guard(Oid function, Guard* guard) {
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple))
        return false;
    auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    const Oid* types = form->proargtypes.values;
    bool fits = form->prokind == PROKIND_FUNCTION && !form->proretset && form->pronargs == 2 &&
                types[0] == types[1] && get_typtype(types[0]) == TYPTYPE_COMPOSITE &&
                (form->prorettype == BOOLOID || form->prorettype == TEXTOID);
    if (fits)
        *guard = {function, types[0], form->prorettype == TEXTOID};
    ReleaseSysCache(tuple);
    return fits;
}

bool read_guards(StateMachine* machine, Oid relid, const Trigger* trigger) {
    if (argument_count(trigger) < 5 || trigger->tgqual == nullptr)
        return argument_count(trigger) < 5 && trigger->tgqual == nullptr;
    if (!is_guards(trigger->tgargs[4]) || strlen(trigger->tgqual) > kMostConditionBytes)
        return false;
    Functions functions = {CurrentMemoryContext, nullptr, 0};
    bool is_condition = false;
    in_scratch([&] { is_condition = read_condition(trigger->tgqual, &functions); });
    if (!is_condition)
        return false;
    for (int i = 0; i < functions.count; i++)
        if (!is_row_of(functions.first[i].row_type, relid, trigger->tgisclone))
            return false;
    machine->guarded = parse_declaration(trigger->tgargs[4]);
    machine->guards = functions.first;
    machine->guard_count = functions.count;
    return numbers_fit(machine->guarded, functions.count);
}

const Guard* guard_of(const StateMachine* machine, const char* from, const char* to) {
    if (machine->guarded == nullptr || from == nullptr)
        return nullptr;
    const JsonbValue* targets = member_of(&machine->guarded->root, from);
    if (targets == nullptr)
        return nullptr;
    const JsonbValue* number = member_of(targets->val.binary.data, to);
    if (number == nullptr)
        return nullptr;
    return &machine->guards[DatumGetInt32(
        DirectFunctionCall1(numeric_int4, NumericGetDatum(number->val.numeric)))];
}

// --- Asking ------------------------------------------------------------------------------------

// As PL/pgSQL shows a row to BEFORE triggers: generated columns are computed after them, and the
// new row still has the old values there.
static HeapTuple form_row(TupleDesc columns, const RowValues& row, bool is_new) {
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * columns->natts));
    for (int i = 0; i < columns->natts; i++)
        nulls[i] = row.nulls[i] || (is_new && TupleDescAttr(columns, i)->attgenerated != '\0');
    return heap_form_tuple(columns, row.values, nulls);
}

// A guard of a partitioned table takes rows of that table.
static Datum row_argument(const RowChange& change, TupleTableSlot* slot, Oid row_type) {
    TupleDesc columns = RelationGetDescr(change.rel);
    HeapTuple row = form_row(columns, values_in(slot), slot == change.new_row);
    if (row_type == change.rel->rd_rel->reltype)
        return heap_copy_tuple_as_datum(row, columns);
    TupleDesc wanted = lookup_rowtype_tupdesc(row_type, -1);
    TupleConversionMap* map = convert_tuples_by_name(columns, wanted);
    if (map != nullptr)
        row = execute_attr_map_tuple(row, map);
    Datum result = heap_copy_tuple_as_datum(row, wanted);
    ReleaseTupleDesc(wanted);
    return result;
}

namespace {

// What functions keep from call to call, such as plans, lives as long as the statement.
struct KnownFunctions {
    MemoryContext memory; // of this struct, and of what the functions keep
    int count;
    FmgrInfo functions[FLEXIBLE_ARRAY_MEMBER];
};

} // namespace

static FmgrInfo* function_of(const Guard& guard, const StateMachine* machine, FmgrInfo* caller) {
    auto* known = static_cast<KnownFunctions*>(caller->fn_extra);
    if (known == nullptr || known->count != machine->guard_count) {
        forget_functions(caller);
        MemoryContext memory = AllocSetContextCreate(
            caller->fn_mcxt, "pg_interlock functions of guards", ALLOCSET_SMALL_SIZES);
        known = static_cast<KnownFunctions*>(MemoryContextAllocZero(
            memory, offsetof(KnownFunctions, functions) + sizeof(FmgrInfo) * machine->guard_count));
        known->memory = memory;
        known->count = machine->guard_count;
        caller->fn_extra = known;
    }
    FmgrInfo* function = &known->functions[&guard - machine->guards];
    if (function->fn_oid != guard.function)
        fmgr_info_cxt(guard.function, function, known->memory);
    return function;
}

void forget_functions(FmgrInfo* caller) {
    auto* known = static_cast<KnownFunctions*>(caller->fn_extra);
    caller->fn_extra = nullptr;
    if (known != nullptr)
        MemoryContextDelete(known->memory);
}

static void require_execute(const Guard& guard) {
    AclResult allowed = check_function_privilege(guard.function, GetUserId());
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(guard.function));
    InvokeFunctionExecuteHook(guard.function);
}

// A text says why not: null and empty say nothing against it. A boolean has to be true.
static const char* objection_in(const Guard& guard, NullableDatum answer) {
    if (guard.gives_reason) {
        char* reason = answer.isnull ? nullptr : TextDatumGetCString(answer.value);
        return reason == nullptr || reason[0] == '\0' ? nullptr : reason;
    }
    if (!answer.isnull && DatumGetBool(answer.value))
        return nullptr;
    return psprintf("guard %s does not allow it", format_procedure(guard.function));
}

const char* objection_of(const Guard& guard, const StateMachine* machine, const RowChange& change,
                         FmgrInfo* caller) {
    require_execute(guard);
    LOCAL_FCINFO(call, 2);
    InitFunctionCallInfoData(*call, function_of(guard, machine, caller), 2, InvalidOid, nullptr,
                             nullptr);
    call->args[0] = {row_argument(change, change.old_row, guard.row_type), false};
    call->args[1] = {row_argument(change, change.new_row, guard.row_type), false};
    Datum answer = FunctionCallInvoke(call);
    return objection_in(guard, {answer, call->isnull});
}

// --- The write of try_transition ---------------------------------------------------------------

static const GuardedWrite* current_write = nullptr;

static void run_guarded(const WritingFunction& function, void (*body)(void* closure),
                        void* closure) {
    with_current(&current_write, static_cast<const GuardedWrite*>(&function),
                 [&] { body(closure); });
}

GuardedWrite guarded_write(Relation rel, const StateMachine* machine) {
    GuardedWrite write = {};
    write.run = run_guarded;
    write.root = root_of(rel);
    write.column = NameStr(machine->name);
    write.trigger_depth = trigger_depth();
    write.memory = CurrentMemoryContext;
    return write;
}

const GuardedWrite* firing_write(const RowChange& change, const StateMachine* machine) {
    if (current_write == nullptr || trigger_depth() != current_write->trigger_depth + 1 ||
        strcmp(NameStr(machine->name), current_write->column) != 0 ||
        root_of(change.rel) != current_write->root)
        return nullptr;
    return current_write;
}

} // namespace interlock::transition
