// Requiring leases: checks the owner's declaration and stores it as the arguments of a trigger.

#include "lease/require.h"

#include "lease/argument.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/key.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/trigger_state.h"

namespace interlock::lease {

constexpr const char* kTriggerPrefix = "zzz_interlock_lease_";
constexpr const char* kTriggerFunction = "lease_trigger";

static const char* default_template(Relation rel);
static void check_template(Relation rel, const char* key);
static NameList columns_argument(Relation rel, const Arguments& arguments, int n);
static const Trigger* only_requirement(Relation rel);
static const char* trigger_name(Relation rel, const Trigger* existing, const char* key);
[[noreturn]] static void raise_no_requirement(Relation rel, const char* key);

extern "C" {
PG_FUNCTION_INFO_V1(require_lease);
PG_FUNCTION_INFO_V1(unrequire_lease);

// require_lease(rel, key, columns)
Datum require_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), ShareRowExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    const char* key = arguments.is_null(1) ? default_template(rel) : arguments.string(1, "key");
    check_template(rel, key);
    LeaseSettings settings = {key, {}, columns_argument(rel, arguments, 2)};
    const Trigger* existing = find_trigger(rel, kTriggerFunction, key);
    refuse_partition(rel, existing != nullptr && existing->tgisclone);
    const char* name = trigger_name(rel, existing, key);
    char* command = psprintf(
        "CREATE OR REPLACE TRIGGER %s AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW "
        "EXECUTE FUNCTION %s(%s)",
        quote_identifier(name), qualified_name(rel), own_trigger_function_name(kTriggerFunction),
        arguments_sql(trigger_arguments(settings)));
    Oid relid = RelationGetRelid(rel);
    close_table(rel);
    with_spi([&] { replace_trigger(relid, name, command); });
    record_change(change);
    PG_RETURN_VOID();
}

// unrequire_lease(rel, key)
Datum unrequire_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    const char* key = arguments.string_or_null(1);
    const Trigger* trigger =
        key != nullptr ? find_trigger(rel, kTriggerFunction, key) : only_requirement(rel);
    if (trigger == nullptr)
        raise_no_requirement(rel, key);
    refuse_partition(rel, trigger->tgisclone);
    char* command =
        psprintf("DROP TRIGGER %s ON %s", quote_identifier(trigger->tgname), qualified_name(rel));
    close_table(rel);
    with_spi([&] { run_command(command); });
    record_change(change);
    PG_RETURN_VOID();
}
}

// table:{a}:{b}
static const char* default_template(Relation rel) {
    const TableInfo* info = table_info(rel);
    require_key(rel, info);
    StringInfoData key;
    initStringInfo(&key);
    for (const char* at = RelationGetRelationName(rel); *at != '\0'; at++) {
        if (*at == '{' || *at == '}')
            appendStringInfoChar(&key, *at);
        appendStringInfoChar(&key, *at);
    }
    for (int i = 0; i < info->key.count; i++)
        appendStringInfo(&key, ":{%s}", column_name(info, info->key.columns[i].attnum));
    return key.data;
}

static void check_stored(Relation rel, Form_pg_attribute attribute) {
    if (!is_stored(attribute))
        ereport(
            ERROR,
            (errcode(ERRCODE_GENERATED_ALWAYS),
             errmsg("cannot require a lease for virtual generated column \"%s\" of table \"%s\"",
                    NameStr(attribute->attname), RelationGetRelationName(rel)),
             errhint("Name the columns that it is computed from.")));
}

static void check_key_column(Relation rel, const char* name) {
    Form_pg_attribute attribute =
        TupleDescAttr(RelationGetDescr(rel), column_number(rel, name) - 1);
    check_stored(rel, attribute);
    if (!prints_alike(getBaseType(attribute->atttypid)))
        ereport(
            ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("column \"%s\" of table \"%s\" cannot be part of a lease key: its type is %s",
                    name, RelationGetRelationName(rel), format_type_be(attribute->atttypid)),
             errhint("Use a text, integer, numeric, boolean, uuid, enum, date or timestamp "
                     "column.")));
}

// The key with braces around its columns, orders:{id} for orders:id; null when no word behind a
// separator is one.
static const char* with_braces(Relation rel, const char* key) {
    StringInfoData text;
    initStringInfo(&text);
    bool found = false;
    for (const char* word = key;; word++) {
        size_t length = strcspn(word, ":/");
        const char* name = pnstrdup(word, length);
        bool is_column =
            word != key && find_attribute(RelationGetDescr(rel), name) != InvalidAttrNumber;
        appendStringInfo(&text, "%s%s%s", is_column ? "{" : "", name, is_column ? "}" : "");
        found = found || is_column;
        word += length;
        if (*word == '\0')
            return found ? text.data : nullptr;
        appendStringInfoChar(&text, *word);
    }
}

// Such a key is allowed. It can also be one whose braces were forgotten.
static void warn_of_missing_braces(Relation rel, const char* key) {
    const char* meant = with_braces(rel, key);
    if (meant != nullptr)
        ereport(WARNING,
                (errmsg("lease key \"%s\" is one lease for all rows of table \"%s\"", key,
                        RelationGetRelationName(rel)),
                 errhint("Columns stand in braces: SELECT interlock.unrequire_lease(%1$s, %2$s), "
                         "interlock.require_lease(%1$s, %3$s);",
                         quote_literal_cstr(typed_name(rel)), quote_literal_cstr(key),
                         quote_literal_cstr(meant))));
}

// The levels must be good with whatever values.
static void check_template(Relation rel, const char* key) {
    LeaseTemplate pieces = parse_template(key);
    if (pieces.count == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("braces of lease key \"%s\" do not match", key),
                        errhint("For example product:{id}; write {{ and }} for braces.")));
    bool has_columns = false;
    for (int i = 0; i < pieces.count; i++) {
        if (pieces.pieces[i].name == nullptr)
            continue;
        has_columns = true;
        check_key_column(rel, pieces.pieces[i].name);
    }
    StringInfoData sample = sample_key(pieces);
    lease_key_argument(cstring_to_text_with_len(sample.data, sample.len));
    if (!has_columns)
        warn_of_missing_braces(rel, key);
}

static NameList columns_argument(Relation rel, const Arguments& arguments, int n) {
    if (arguments.is_null(n))
        return {};
    NameList columns = arguments.names(n, "columns");
    if (columns.count == 0)
        refuse_empty("columns", "Leave it out if every update needs the lease.");
    for (const char* name : columns)
        check_stored(rel, TupleDescAttr(RelationGetDescr(rel), column_number(rel, name) - 1));
    return columns;
}

static bool is_requirement(const Trigger* trigger) {
    return argument_count(trigger) > 0 && trigger_calls(trigger, kTriggerFunction);
}

// Not the one for the default template: that changes with the names of the table and its key.
static const Trigger* only_requirement(Relation rel) {
    const TriggerDesc* triggers = triggers_of(rel);
    const Trigger* only = nullptr;
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (!is_requirement(trigger))
            continue;
        if (only != nullptr)
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                     errmsg("table \"%s\" requires several leases", RelationGetRelationName(rel)),
                     errhint("Name one with key: \"%s\" or \"%s\".", only->tgargs[0],
                             trigger->tgargs[0])));
        only = trigger;
    }
    return only;
}

// The requirement's trigger, by whatever name, or the name of the one to create.
static const char* trigger_name(Relation rel, const Trigger* existing, const char* key) {
    if (existing != nullptr)
        return pstrdup(existing->tgname);
    uint64 hash = hash_bytes_extended(reinterpret_cast<const unsigned char*>(key),
                                      static_cast<int>(strlen(key)), 0);
    char* name = psprintf("%s%08x%08x", kTriggerPrefix, static_cast<uint32>(hash >> 32),
                          static_cast<uint32>(hash));
    refuse_taken_trigger(rel, name, psprintf("lease \"%s\"", key));
    return name;
}

static void raise_no_requirement(Relation rel, const char* key) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    key != nullptr ? errmsg("table \"%s\" does not require lease \"%s\"",
                                            RelationGetRelationName(rel), key)
                                   : errmsg("table \"%s\" does not require a lease",
                                            RelationGetRelationName(rel)),
                    errhint("Its owner can call interlock.require_lease.")));
}

} // namespace interlock::lease
