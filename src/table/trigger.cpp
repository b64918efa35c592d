#include "table/trigger.h"

#include "table/name.h"
#include "table/own_table.h"

namespace interlock::inline table {

bool trigger_fires(char enabled) {
    switch (enabled) {
    case TRIGGER_FIRES_ALWAYS:
        return true;
    case TRIGGER_FIRES_ON_ORIGIN:
        return SessionReplicationRole != SESSION_REPLICATION_ROLE_REPLICA;
    case TRIGGER_FIRES_ON_REPLICA:
        return SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
    default:
        return false;
    }
}

const TriggerDesc* triggers_of(Relation rel) { return CopyTriggerDesc(rel->trigdesc); }

bool trigger_calls(const Trigger* trigger, const char* function_name) {
    char* name = get_func_name(trigger->tgfoid);
    return name != nullptr && strcmp(name, function_name) == 0 &&
           get_func_namespace(trigger->tgfoid) == internal_schema();
}

namespace {

// A trigger in the catalog; without a table once it is gone.
struct TriggerRow {
    Oid table;
    Oid parent; // InvalidOid unless it is a clone
};

} // namespace

static TriggerRow row_of_trigger(Oid oid) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
    Relation catalog = table_open(TriggerRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, TriggerOidIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    TriggerRow row = {};
    if (HeapTupleIsValid(tuple)) {
        auto* form = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(tuple));
        row = {form->tgrelid, form->tgparentid};
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return row;
}

Oid root_of_trigger(Oid relid, const Trigger* trigger) {
    Oid root = relid;
    if (!trigger->tgisclone)
        return root;
    List* ancestors = get_partition_ancestors(relid); // a detached table may keep its clones
    TriggerRow row = row_of_trigger(trigger->tgoid);
    while (OidIsValid(row.parent)) {
        row = row_of_trigger(row.parent);
        if (!list_member_oid(ancestors, row.table))
            break;
        root = row.table;
    }
    return root;
}

const Trigger* find_trigger(Relation rel, const char* function_name, const char* argument) {
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        bool has_argument = argument == nullptr || (argument_count(trigger) > 0 &&
                                                    strcmp(trigger->tgargs[0], argument) == 0);
        if (has_argument && trigger_calls(trigger, function_name))
            return trigger;
    }
    return nullptr;
}

static char* new_trigger_name(const char* prefix, const char* column) {
    constexpr int kHashBytes = 9;
    char* name = psprintf("%s_%s", prefix, column);
    int length = static_cast<int>(strlen(name));
    if (length < NAMEDATALEN)
        return name;
    name[pg_mbcliplen(name, length, NAMEDATALEN - 1 - kHashBytes)] = '\0';
    return psprintf("%s_%08x", name,
                    hash_bytes(reinterpret_cast<const unsigned char*>(column),
                               static_cast<int>(strlen(column))));
}

const char* column_trigger_name(Relation rel, const char* prefix, const char* function_name,
                                const char* column) {
    const Trigger* existing = find_trigger(rel, function_name, column);
    if (existing != nullptr)
        return pstrdup(existing->tgname);
    char* name = new_trigger_name(prefix, column);
    refuse_taken_trigger(rel, name, psprintf("column \"%s\"", column));
    return name;
}

char* drop_of_column_trigger(Relation rel, const char* function_name, const char* column) {
    const Trigger* trigger = find_trigger(rel, function_name, column);
    return trigger == nullptr ? nullptr
                              : psprintf("DROP TRIGGER %s ON %s", quote_identifier(trigger->tgname),
                                         qualified_name(rel));
}

void refuse_taken_trigger(Relation rel, const char* trigger, const char* subject) {
    if (OidIsValid(get_trigger_oid(RelationGetRelid(rel), trigger, true)))
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("trigger \"%s\" of table \"%s\" is not about %s", trigger,
                               RelationGetRelationName(rel), subject),
                        errhint("Rename it, or drop it if nothing needs it.")));
}

void refuse_partition(Relation rel, bool is_clone) {
    if (is_clone)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" is a partition and configured with its parent",
                               RelationGetRelationName(rel)),
                        errhint("Call the function for the partitioned table.")));
}

void raise_forged(Relation rel, const char* trigger, const char* maker) {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("trigger \"%s\" of table \"%s\" is not as interlock.%s creates it",
                           trigger, RelationGetRelationName(rel), maker),
                    errhint("DROP TRIGGER %s ON %s; then call interlock.%s.",
                            quote_identifier(trigger), typed_name(rel), maker)));
}

void raise_twins(Relation rel, const char* first, const char* second, const char* maker) {
    if (strcmp(first, second) > 0)
        std::swap(first, second);
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("triggers \"%s\" and \"%s\" of table \"%s\" do the same, and "
                           "interlock.%s creates only one of them",
                           first, second, RelationGetRelationName(rel), maker),
                    errhint("Drop the trigger that interlock did not create. A role with TRIGGER "
                            "on the table has created it.")));
}

OwnTrigger own_trigger(Oid relid, const Trigger* trigger) {
    OwnTrigger own = {};
    own.trigger_oid = trigger->tgoid;
    own.trigger = pstrdup(trigger->tgname);
    own.root = root_of_trigger(relid, trigger);
    own.enabled = trigger->tgenabled;
    own.is_clone = trigger->tgisclone;
    return own;
}

const char* name_to_create(Relation rel, const OwnTrigger* present, const char* name,
                           const char* subject, const char* maker) {
    if (present == nullptr) {
        refuse_taken_trigger(rel, name, subject);
        return name;
    }
    if (present->twin != nullptr)
        raise_twins(rel, present->trigger, present->twin, maker);
    return pstrdup(present->trigger);
}

NameList arguments_from(const Trigger* trigger, int first) {
    int count = Max(0, argument_count(trigger) - first);
    auto** names = static_cast<const char**>(palloc(sizeof(char*) * (count + 1)));
    for (int i = 0; i < count; i++)
        names[i] = pstrdup(trigger->tgargs[first + i]);
    return {names, count};
}

char* arguments_sql(const List* arguments) {
    StringInfoData text;
    initStringInfo(&text);
    ListCell* cell;
    foreach (cell, arguments)
        appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "",
                         quote_literal_cstr(static_cast<const char*>(lfirst(cell))));
    return text.data;
}

bool has_arguments(const Trigger* trigger, const List* arguments) {
    bool same = argument_count(trigger) == list_length(arguments);
    for (int i = 0; same && i < list_length(arguments); i++)
        same = strcmp(trigger->tgargs[i], static_cast<const char*>(list_nth(arguments, i))) == 0;
    return same;
}

List* add_argument(List* arguments, const char* text) {
    return lappend(arguments, const_cast<char*>(text));
}

List* add_names(List* arguments, const NameList& names) {
    for (const char* name : names)
        arguments = add_argument(arguments, name);
    return arguments;
}

bool is_name(const char* text) { return text[0] != '\0' && strlen(text) < NAMEDATALEN; }

void name_argument(const Trigger* trigger, int n, NameData* name) {
    const char* text = n < argument_count(trigger) ? trigger->tgargs[n] : "";
    int length = pg_mbcliplen(text, static_cast<int>(strlen(text)), NAMEDATALEN - 1);
    memset(NameStr(*name), 0, NAMEDATALEN);
    memcpy(NameStr(*name), text, length);
}

TriggerData* row_trigger(FunctionCallInfo fcinfo, const char* function_name, TriggerEvent timing) {
    CHECK_FOR_INTERRUPTS(); // the server asks for none between the rows of AFTER triggers
    auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
        (trigger->tg_event & TRIGGER_EVENT_TIMINGMASK) != timing)
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" must be called by %s ROW trigger", function_name,
                               timing == TRIGGER_EVENT_BEFORE ? "a BEFORE" : "an AFTER"),
                        errhint("The enabling functions of pg_interlock create it.")));
    // The rows of a foreign table have no header with the transaction that wrote them.
    if (trigger->tg_relation->rd_rel->relkind != RELKIND_RELATION)
        ereport(ERROR,
                (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                 errmsg("function \"%s\" cannot be called for \"%s\", which is not a table",
                        function_name, RelationGetRelationName(trigger->tg_relation)),
                 errhint("DROP TRIGGER %s ON %s;", quote_identifier(trigger->tg_trigger->tgname),
                         typed_name(trigger->tg_relation))));
    return trigger;
}

bool session_owns(Oid relid) {
    return owns_relation(relid, GetUserId()) && owns_relation(relid, GetOuterUserId());
}

bool fires_in_restore(const TriggerData* trigger) {
    Relation rel = trigger->tg_relation;
    return trigger->tg_trigger->tgisclone && TRIGGER_FIRED_BY_INSERT(trigger->tg_event) &&
           was_truncated(rel) &&
           is_loaded_by_restore(rel, root_of_trigger(RelationGetRelid(rel), trigger->tg_trigger));
}

bool is_loaded_by_restore(Relation rel, Oid root) {
    return was_truncated(rel) && !rel->rd_rel->relhasindex && session_owns(root);
}

int trigger_depth() { return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, 0)); }

} // namespace interlock::inline table
