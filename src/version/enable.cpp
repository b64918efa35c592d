// Enabling versions: checks the configuration and stores it as the arguments of a trigger.

#include "ownership/ownership.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/last_word.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/trigger_state.h"
#include "version/start.h"
#include "version/version.h"

namespace interlock::version {

constexpr const char* kTriggerName = "zzz_interlock_version";

namespace {

// The arguments of enable_versioning.
struct Request : VersionSettings {
    int16 events; // that are checked, of INSERT and UPDATE
};

} // namespace

static Request read_request(const Arguments& arguments);
static void check_same_column(Relation rel, const TableInfo* info, const Request& request);
static void check_ignored_columns(Relation rel, const TableInfo* info, const Request& request);
static void check_token_column(Relation rel, const TableInfo* info, AttrNumber attnum);
static bool is_time(Relation rel, AttrNumber column);
static void refuse_shared_columns(Relation rel, const TableInfo* info);
static bool wants_start(Relation rel, const TableInfo* info, const char* column);
static void do_without_start(Oid relid, const char* column, bool wanted);
static bool adopts_nullable(const TableInfo* info, AttrNumber column);
static void report_nulls(const char* table, const char* column, bool time);
static const char* trigger_name(Relation rel, const TableInfo* info);
static void create_version_trigger(Oid relid, const char* table, const char* trigger,
                                   const Request& request);

extern "C" {
PG_FUNCTION_INFO_V1(enable_versioning);
PG_FUNCTION_INFO_V1(disable_versioning);

Datum enable_versioning(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Request request = read_request(arguments);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    const TableInfo* info = table_info(rel);
    require_column_name(rel, request.column);
    check_same_column(rel, info, request);
    AttrNumber column = find_attribute(info->columns, request.column);
    if (column != InvalidAttrNumber)
        check_token_column(rel, info, column);
    check_ignored_columns(rel, info, request);
    bool time = column != InvalidAttrNumber && is_time(rel, column);
    if (time)
        request.events = TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE;
    const char* trigger = trigger_name(rel, info);
    require_last_word_of(rel, trigger, request.events);
    bool is_distributed = info->distribution != Distribution::kNone;
    if (time && info->distribution == Distribution::kReference)
        refuse_distributed(rel, "a time as the version", kReferenceHint);
    bool start = wants_start(rel, info, request.column);
    bool may_have_nulls = column != InvalidAttrNumber && adopts_nullable(info, column);
    char* table = qualified_name(rel);
    close_table(rel); // the server refuses to alter a table that is open in this session

    with_spi([&] {
        if (column == InvalidAttrNumber)
            run_command(psprintf("ALTER TABLE %s ADD COLUMN %s bigint NOT NULL DEFAULT 1", table,
                                 quote_identifier(request.column)));
        if (start && !is_distributed)
            create_start(info->relid, request.column);
        if (is_distributed)
            do_without_start(info->relid, request.column, start);
        create_version_trigger(info->relid, table, trigger, request);
        if (may_have_nulls)
            report_nulls(table, request.column, time);
    });
    record_change(change);
    PG_RETURN_VOID();
}

Datum disable_versioning(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    const TableInfo* info = table_info(rel);
    const Versioning* versioning = versioning_of(info);
    if (versioning == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" is not versioned", RelationGetRelationName(rel))));
    refuse_partition(rel, versioning->is_clone);
    refuse_shared_columns(rel, info);
    Oid start = versioning->column != InvalidAttrNumber ? find_start(versioning) : InvalidOid;
    char* table = qualified_name(rel);
    const char* trigger = quote_identifier(trigger_name(rel, info));
    close_table(rel);

    with_spi([&] {
        run_command(psprintf("DROP TRIGGER %s ON %s", trigger, table));
        if (OidIsValid(start))
            drop_start(info->relid, NameStr(versioning->name), start);
    });
    record_change(change);
    PG_RETURN_VOID();
}
}

static Request read_request(const Arguments& arguments) {
    Request request = {};
    request.column = arguments.name(1, "version_column");
    request.ignored = arguments.names(2, "ignore_columns");
    request.blind_updates = blind_updates_argument(arguments, 3);
    const char* unchanged = arguments.string(4, "unchanged");
    if (!parse_unchanged(unchanged, &request.keeps_unchanged))
        refuse_value("unchanged", unchanged, "Use 'move' or 'keep'.");
    request.events = TRIGGER_TYPE_UPDATE;
    return request;
}

static void check_same_column(Relation rel, const TableInfo* info, const Request& request) {
    if (versioning_of(info) != nullptr)
        refuse_partition(rel, versioning_of(info)->is_clone);
    // A column that is gone was renamed, or another one takes its place.
    if (versioning_of(info) == nullptr || versioning_of(info)->column == InvalidAttrNumber ||
        strcmp(NameStr(versioning_of(info)->name), request.column) == 0)
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("table \"%s\" is already versioned by column \"%s\"",
                           RelationGetRelationName(rel), NameStr(versioning_of(info)->name)),
                    errhint("Disable that first: %s", call_for("disable_versioning", rel))));
}

static void check_ignored_columns(Relation rel, const TableInfo* info, const Request& request) {
    for (int i = 0; i < request.ignored.count; i++) {
        const char* name = request.ignored[i];
        const ownership::ColumnRule* rule = ownership::rule_of(info, column_number(rel, name));
        if (rule != nullptr && rule->access == ownership::Access::kShared &&
            rule->strategy == ownership::Strategy::kMerge)
            ownership::raise_merge_of_ignored(rel, name);
        if (strcmp(name, request.column) == 0)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("version column \"%s\" cannot be ignored", name)));
    }
}

static void check_token_column(Relation rel, const TableInfo* info, AttrNumber attnum) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    TokenKind kind;
    if (!token_kind_of(attribute->atttypid, &kind))
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("column \"%s\" of table \"%s\" cannot be a version: its type is %s",
                        NameStr(attribute->attname), RelationGetRelationName(rel),
                        format_type_be(attribute->atttypid)),
                 errhint("Use a column of type integer, bigint, timestamp or timestamptz, or give "
                         "the name of one to add: SELECT interlock.enable_versioning(%s, "
                         "'row_version');",
                         quote_literal_cstr(typed_name(rel)))));
    if (attribute->attgenerated != '\0' || attribute->attidentity != '\0')
        ereport(ERROR, (errcode(ERRCODE_GENERATED_ALWAYS),
                        errmsg("column \"%s\" of table \"%s\" cannot be a version: the server "
                               "generates its value",
                               NameStr(attribute->attname), RelationGetRelationName(rel)),
                        errhint("Give the name of another column, or of one to add.")));
    if (bms_is_member(attnum, info->key.attnums))
        ereport(
            ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("column \"%s\" is part of the key of table \"%s\" and cannot be its version",
                    NameStr(attribute->attname), RelationGetRelationName(rel)),
             errhint("Give the name of another column, or of one to add.")));
}

// A new row's time is checked as well, while a counter may start anywhere.
static bool is_time(Relation rel, AttrNumber column) {
    TokenKind kind;
    return token_kind_of(TupleDescAttr(RelationGetDescr(rel), column - 1)->atttypid, &kind) &&
           !is_counter(kind);
}

// Their rule for blind updates would be void.
static void refuse_shared_columns(Relation rel, const TableInfo* info) {
    const ownership::Ownership* ownership = ownership::ownership_of(info);
    for (int i = 0; ownership != nullptr && i < ownership->rules.count; i++) {
        const ownership::ColumnRule& rule = ownership->rules.rules[i];
        if (rule.blind_updates != BlindUpdates::kAllow)
            ereport(
                ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg(
                     "column \"%s\" of table \"%s\" needs the version to recognize blind updates",
                     rule.name, RelationGetRelationName(rel)),
                 errhint("Release the column first: SELECT interlock.release_columns(%s, "
                         "ARRAY[%s]);",
                         quote_literal_cstr(qualified_name(rel)), quote_literal_cstr(rule.name))));
    }
}

// 1 is a constant for a bigint column, too, though stored as the cast of an integer. Nothing is
// evaluated: the functions in it are the owner's, and the caller may be an administrator.
static bool is_constant(const char* expression) {
    auto* node = static_cast<Node*>(stringToNode(expression));
    while (IsA(node, FuncExpr)) {
        auto* call = reinterpret_cast<FuncExpr*>(node);
        if (list_length(call->args) != 1 || call->funcformat == COERCE_EXPLICIT_CALL)
            return false;
        node = static_cast<Node*>(linitial(call->args));
    }
    return IsA(node, Const);
}

// A default that was copied from another table, or that a tool has loaded; maybe in a partition.
static bool reads_no_own_start(Oid relid, AttrNumber column) {
    const char* name = start_name(relid, column);
    return name != nullptr && lacks_start(relid, column, name);
}

// A new row starts above the start unless the owner computes the default otherwise: no default, or
// a constant one, would start a row that is inserted again at an old version.
static bool wants_start(Relation rel, const TableInfo* info, const char* column_name) {
    AttrNumber column = find_attribute(info->columns, column_name);
    if (column == InvalidAttrNumber)
        return true;
    TokenKind kind;
    if (!token_kind_of(TupleDescAttr(info->columns, column - 1)->atttypid, &kind) ||
        !is_counter(kind))
        return false;
    TupleConstr* constraints = RelationGetDescr(rel)->constr;
    for (int i = 0; constraints != nullptr && i < constraints->num_defval; i++)
        if (constraints->defval[i].adnum == column && !is_constant(constraints->defval[i].adbin))
            return reads_no_own_start(info->relid, column);
    return true;
}

// The default is computed on the server that the client is connected to, and rows are deleted where
// their shard is.
static void do_without_start(Oid relid, const char* column, bool wanted) {
    const char* table = get_rel_name(relid);
    Oid sequence = start_of_column(relid, get_attnum(relid, column));
    if (OidIsValid(sequence))
        drop_start(relid, column, sequence);
    else if (wanted)
        run_command(psprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT 1", qualified_name(relid),
                             quote_identifier(column)));
    if (wanted || OidIsValid(sequence))
        ereport(NOTICE,
                (errmsg("new rows of table \"%s\" start at version 1, also with a key that was "
                        "used before",
                        table),
                 errdetail("Citus distributes the table, so no sequence stores the versions of "
                           "rows that were deleted."),
                 errhint("Use keys that are never used again.")));
}

static bool adopts_nullable(const TableInfo* info, AttrNumber column) {
    return versioning_of(info) == nullptr && !has_no_nulls(info->columns, column);
}

// An ORM compares versions by =, which finds no such row: each save would be a conflict. The owner
// fills them, as that writes all of them.
static void report_nulls(const char* table, const char* column, bool time) {
    const char* name = quote_identifier(column);
    run_command(psprintf("SELECT FROM %s WHERE %s IS NULL LIMIT 1", table, name));
    if (SPI_processed == 0)
        return;
    ereport(
        NOTICE,
        (errmsg("column \"%s\" is null in some rows: they count as version %s, and a comparison "
                "by = finds none of them",
                column, time ? "-infinity" : "0"),
         errhint("To fill them: UPDATE %s SET %s = %s WHERE %s IS NULL AND "
                 "interlock.any_version(%s);",
                 table, name, time ? "now()" : "1", name, name)));
}

static const char* trigger_name(Relation rel, const TableInfo* info) {
    return name_to_create(rel, versioning_of(info), kTriggerName, "versions", "enable_versioning");
}

static void create_version_trigger(Oid relid, const char* table, const char* trigger,
                                   const Request& request) {
    bool on_insert = (request.events & TRIGGER_TYPE_INSERT) != 0;
    replace_trigger(
        relid, trigger,
        psprintf("CREATE OR REPLACE TRIGGER %s BEFORE %sUPDATE OR DELETE ON %s FOR EACH ROW "
                 "EXECUTE FUNCTION %s(%s)",
                 quote_identifier(trigger), on_insert ? "INSERT OR " : "", table,
                 own_trigger_function_name("version_trigger"),
                 arguments_sql(trigger_arguments(request))));
}

} // namespace interlock::version
