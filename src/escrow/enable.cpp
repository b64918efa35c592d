// Enabling and disabling escrow counters: checks the column and creates the triggers. ACCESS
// EXCLUSIVE on the table excludes all that adjust, also prepared transactions (E10).

#include "escrow/change.h"
#include "escrow/fold.h"
#include "escrow/reservation.h"
#include "ownership/ownership.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/last_word.h"
#include "table/own_table.h"
#include "table/part.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/trigger_state.h"

using namespace interlock;

namespace {

struct TriggerKind {
    const char* prefix;
    const char* function;
    const char* event;
};
constexpr TriggerKind kRowTrigger = {kEscrowTriggerPrefix, "escrow_trigger",
                                     "BEFORE INSERT OR UPDATE OR DELETE"};
constexpr TriggerKind kTruncateTrigger = {"zzz_interlock_truncate", "escrow_truncate_trigger",
                                          "BEFORE TRUNCATE"};

struct Request {
    AttrNumber attnum;
    const char* column;
    const char* least;
    const char* most; // empty: none
    int64 greatest;   // of these limits and those of the type
    const char* plain_updates;
    bool fold_moves_version;
};

Request read_request(const Arguments& arguments, Relation rel);
void check_table_kind(Relation rel, const TableInfo* info);
void check_column(Relation rel, const TableInfo* info, AttrNumber attnum);
void check_values(Oid relid, const Request& request);

// A trigger's name, and the command that creates or replaces it.
struct TriggerCommand {
    const char* name;
    char* command;
};
TriggerCommand create_trigger(Relation rel, const TriggerKind& kind, const char* column,
                              const char* more_arguments);
const char* row_arguments(const Request& request, List* key);
void run_trigger_command(Oid relid, AttrNumber attnum, const Bitmapset* key,
                         const TriggerCommand& trigger);
void refuse_gone_column(Relation rel, const TableInfo* info);
const EscrowColumn* column_to_disable(Relation rel, const TableInfo* info, const char* column);
void end_counters(Relation rel, const EscrowColumn& column);
void return_expired_of_column(Relation rel, const EscrowColumn& column);
void forget_expired_of_column(Oid relid, const EscrowColumn& column);
void refuse_reservations_of(Relation rel, const EscrowColumn& column);
void check_reservations(Relation rel, const TableInfo* info, const EscrowColumn* present,
                        const Request& request);
void forget_old_parts(Oid relid, const char* column);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(enable_escrow);
PG_FUNCTION_INFO_V1(disable_escrow);

// enable_escrow(rel, column_name, minimum, maximum, plain_updates, fold_moves_version)
Datum enable_escrow(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    Oid relid = RelationGetRelid(rel);
    const TableInfo* info = table_info(rel);
    Request request = read_request(arguments, rel);
    check_table_kind(rel, info);
    refuse_gone_column(rel, info);
    const EscrowColumn* present = escrow_of(info, request.attnum);
    if (present == nullptr)
        check_column(rel, info, request.attnum);
    else
        end_counters(rel, *present);
    check_reservations(rel, info, present, request);
    TriggerCommand on_row = create_trigger(rel, kRowTrigger, request.column,
                                           row_arguments(request, key_column_names(rel)));
    TriggerCommand on_truncate = create_trigger(rel, kTruncateTrigger, request.column, "");
    constexpr int16 kEvents = TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE;
    require_last_word(rel, info, kEvents);
    require_last_word_of(rel, on_row.name, kEvents);
    TableChange change = begin_change(arguments, rel);
    const Bitmapset* key = bms_copy(info->key.attnums);
    close_table(rel);
    with_spi([&] {
        as_configuring_owner(relid, [&] { check_values(relid, request); });
        run_trigger_command(relid, request.attnum, key, on_row);
        run_trigger_command(relid, request.attnum, nullptr, on_truncate);
    });
    forget_old_parts(relid, request.column);
    record_change(change);
    PG_RETURN_VOID();
}

// disable_escrow(rel, column_name)
Datum disable_escrow(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    Oid relid = RelationGetRelid(rel);
    const char* name = arguments.name(1, "column_name");
    const EscrowColumn* column = column_to_disable(rel, table_info(rel), name);
    if (column->attnum != InvalidAttrNumber) {
        return_expired_of_column(rel, *column);
        end_counters(rel, *column);
    } else {
        forget_expired_of_column(relid, *column);
    }
    refuse_reservations_of(rel, *column);
    char* on_row = drop_of_column_trigger(rel, kRowTrigger.function, name);
    char* on_truncate = drop_of_column_trigger(rel, kTruncateTrigger.function, name);
    TableChange change = begin_change(arguments, rel);
    close_table(rel);
    with_spi([&] {
        for (char* command : {on_row, on_truncate})
            if (command != nullptr)
                run_command(command);
    });
    forget_old_parts(relid, name);
    record_change(change);
    PG_RETURN_VOID();
}
}

namespace {

// Nobody says whether a plain write that came after them knew of them; and the oid of a table that
// was dropped may be that of another one.
void forget_old_parts(Oid relid, const char* column) {
    NameData name;
    namestrcpy(&name, column);
    int64 count = forget_counters(relid, name);
    if (count > 0)
        ereport(WARNING,
                (errmsg("forgot " INT64_FORMAT " changes of escrow counters in column \"%s\" of "
                        "table \"%s\", which were not in its rows yet",
                        count, column, get_rel_name(relid)),
                 errdetail("The column, or the triggers of its counters, went by other means than "
                           "interlock.disable_escrow(): the rows count as they are.")));
}

const char* text_of_limit(const EscrowColumn& column, int64 limit) {
    return DatumGetCString(DirectFunctionCall1(numeric_out, numeric_of(column, limit)));
}

Request read_request(const Arguments& arguments, Relation rel) {
    Request request = {};
    request.attnum = column_number(rel, arguments.name(1, "column_name"));
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), request.attnum - 1);
    request.column = pstrdup(NameStr(attribute->attname));
    EscrowColumn column = {};
    column.type = attribute->atttypid;
    if (!amount_scale(attribute->atttypid, attribute->atttypmod, &column.scale))
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("column \"%s\" of table \"%s\" cannot have escrow counters: its type is %s",
                        request.column, RelationGetRelationName(rel),
                        format_type_with_typemod(attribute->atttypid, attribute->atttypmod)),
                 errhint("Its type must be smallint, integer, bigint or numeric(p, s) with at most "
                         "18 digits, and no domain.")));
    int64 least = amount_argument(arguments, 2, "minimum", column);
    request.least = text_of_limit(column, least);
    request.most = "";
    request.greatest = range_of_type(attribute->atttypid, attribute->atttypmod).most;
    if (!arguments.is_null(3)) {
        int64 most = amount_argument(arguments, 3, "maximum", column);
        if (most < least)
            refuse_argument("maximum", "must not be less than the minimum");
        request.most = text_of_limit(column, most);
        request.greatest = Min(request.greatest, most);
    }
    PlainUpdates updates;
    std::string_view word = arguments.view(4, "plain_updates");
    if (!parse_plain_updates(word, &updates))
        refuse_value("plain_updates", word, "It is 'reject' or 'delta'.");
    request.plain_updates = kPlainUpdateWords[static_cast<int>(updates)];
    request.fold_moves_version = arguments.boolean(5, "fold_moves_version");
    return request;
}

[[noreturn]] void refuse_table(Relation rel, const char* reason) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("table \"%s\" cannot have escrow counters: %s",
                           RelationGetRelationName(rel), reason)));
}

void check_table_kind(Relation rel, const TableInfo* info) {
    if (rel->rd_rel->relkind != RELKIND_RELATION || rel->rd_rel->relispartition)
        refuse_table(rel, "it is partitioned, or a partition");
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        refuse_table(rel, "it is temporary or unlogged");
    require_key(rel, info);
    for (int i = 0; i < info->key.count; i++)
        if (!may_name_counter(info, info->key.columns[i].attnum))
            refuse_table(rel, psprintf("column \"%s\" of its key is not an integer, a uuid, or a "
                                       "text of a deterministic collation, or is generated",
                                       column_name(info, info->key.columns[i].attnum)));
}

// The column, and those that are generated of it.
Bitmapset* columns_of_value(TupleDesc columns, AttrNumber attnum) {
    Bitmapset* found = bms_make_singleton(attnum);
    for (int column = 1; column <= columns->natts; column++)
        if (bms_is_member(attnum, sources_of(columns, bms_make_singleton(column))))
            found = bms_add_member(found, column);
    return found;
}

// An expression may have the value, too.
bool may_be_over(TupleDesc columns, HeapTuple tuple, const Bitmapset* of_value) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    for (int i = 0; i < index->indnatts; i++)
        if (index->indkey.values[i] == 0 || bms_is_member(index->indkey.values[i], of_value))
            return true;
    bool is_null;
    Datum predicate = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indpred, &is_null);
    return !is_null && bms_overlap(columns_in(columns, TextDatumGetCString(predicate)), of_value);
}

bool is_indexed_uniquely(Relation rel, const Bitmapset* of_value) {
    bool found = false;
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        found = found || ((index->indisunique || index->indisexclusion) &&
                          may_be_over(RelationGetDescr(rel), tuple, of_value));
        ReleaseSysCache(tuple);
    }
    return found;
}

bool is_foreign_key(Relation rel, const Bitmapset* of_value) {
    ListCell* cell;
    foreach (cell, RelationGetFKeyList(rel)) {
        auto* key = static_cast<ForeignKeyCacheInfo*>(lfirst(cell));
        for (int i = 0; i < key->nkeys; i++)
            if (bms_is_member(key->conkey[i], of_value))
                return true;
    }
    return false;
}

void check_column(Relation rel, const TableInfo* info, AttrNumber attnum) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    const Bitmapset* of_value = columns_of_value(info->columns, attnum);
    const char* reason = nullptr;
    if (!has_no_nulls(info->columns, attnum))
        reason = "it may be null";
    else if (attribute->attgenerated != '\0' || attribute->attidentity != '\0')
        reason = "it is generated";
    else if (is_indexed_uniquely(rel, of_value) || is_foreign_key(rel, of_value))
        reason = "it is in a key, or in a unique index or one that may be over it";
    else if (bms_is_member(attnum, info->maintained))
        reason = "it is a version, or belongs to a marker";
    else if (const ColumnRule* rule = rule_of(info, attnum);
             rule != nullptr && rule->access != Access::kFree)
        reason = "it has an owner, or is shared"; // folds are no writer's
    if (reason != nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" cannot have escrow counters: %s",
                               column_name(info, attnum), RelationGetRelationName(rel), reason)));
    require_use(rel, info, attnum, ColumnUse::kMerged);
}

void check_values(Oid relid, const Request& request) {
    const char* column = quote_identifier(request.column);
    run_command(psprintf(
        "SELECT pg_catalog.count(*) FROM ONLY %s WHERE %s IS NULL OR %s::pg_catalog.numeric "
        "OPERATOR(pg_catalog.<) %s::pg_catalog.numeric OR %s::pg_catalog.numeric "
        "OPERATOR(pg_catalog.=) 'NaN'%s",
        qualified_name(relid), column, column, quote_literal_cstr(request.least), column,
        request.most[0] == '\0'
            ? ""
            : psprintf(" OR %s::pg_catalog.numeric OPERATOR(pg_catalog.>) %s::pg_catalog.numeric",
                       column, quote_literal_cstr(request.most))));
    const char* count = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
    if (strcmp(count, "0") != 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("%s rows of table \"%s\" have a value of column \"%s\" outside of "
                               "the limits",
                               count, get_rel_name(relid), request.column)));
}

const char* row_arguments(const Request& request, List* key) {
    StringInfoData arguments;
    initStringInfo(&arguments);
    appendStringInfo(&arguments, ", '%s', '%s', '%s', '%s'", request.least, request.most,
                     request.plain_updates, request.fold_moves_version ? "true" : "false");
    ListCell* cell;
    foreach (cell, key)
        appendStringInfo(&arguments, ", %s", quote_literal_cstr(static_cast<char*>(lfirst(cell))));
    return arguments.data;
}

TriggerCommand create_trigger(Relation rel, const TriggerKind& kind, const char* column,
                              const char* more_arguments) {
    const char* name = column_trigger_name(rel, kind.prefix, kind.function, column);
    if (&kind == &kRowTrigger && !sorts_last(name))
        raise_forged(rel, name, "enable_escrow"); // arguments that are no counter's
    return {name, psprintf("CREATE OR REPLACE TRIGGER %s %s ON %s FOR EACH %s EXECUTE FUNCTION "
                           "%s(%s%s)",
                           quote_identifier(name), kind.event, qualified_name(rel),
                           &kind == &kRowTrigger ? "ROW" : "STATEMENT",
                           own_trigger_function_name(kind.function), quote_literal_cstr(column),
                           more_arguments)};
}

void run_trigger_command(Oid relid, AttrNumber attnum, const Bitmapset* key,
                         const TriggerCommand& trigger) {
    replace_trigger(relid, trigger.name, trigger.command);
    run_command(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", qualified_name(relid),
                         quote_identifier(trigger.name)));
    ObjectAddress dependent = {TriggerRelationId, get_trigger_oid(relid, trigger.name, false), 0};
    ObjectAddress needed = {RelationRelationId, relid, attnum};
    recordDependencyOn(&dependent, &needed, DEPENDENCY_AUTO);
    // Counters go by the text of the key. With another type of a column it could be another text.
    for (int column = -1; (column = bms_next_member(key, column)) >= 0;) {
        needed.objectSubId = column;
        recordDependencyOn(&dependent, &needed, DEPENDENCY_NORMAL);
    }
}

// Renamed, as a rule. Its counters go by the former name.
void refuse_gone_column(Relation rel, const TableInfo* info) {
    each_escrow(info, [&](const EscrowColumn& column) {
        if (column.attnum != InvalidAttrNumber || NameStr(column.name)[0] == '\0')
            return;
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("column \"%s\" of table \"%s\", which has escrow counters, is gone or has "
                    "another type",
                    NameStr(column.name), RelationGetRelationName(rel)),
             errhint("Rename it back and call interlock.disable_escrow before it is renamed. To "
                     "lose the changes that were not in its rows: SELECT "
                     "interlock.disable_escrow(%s, %s).",
                     quote_literal_cstr(qualified_name(rel)),
                     quote_literal_cstr(NameStr(column.name)))));
    });
}

const EscrowColumn* column_to_disable(Relation rel, const TableInfo* info, const char* column) {
    const EscrowColumn* found = escrow_of_name(info, column);
    if (found == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" has no escrow counters", column,
                               RelationGetRelationName(rel))));
    return found;
}

// All parts are decided, and the lock keeps others out.
// But the fold has only the parts that its snapshot has.
void end_counters(Relation rel, const EscrowColumn& column) {
    require_own_trigger(rel, table_info(rel), column);
    fold_column(rel, &column.name);
    if (has_parts(RelationGetRelid(rel), column))
        raise_concurrent_update();
}

void refuse_reservations_of(Relation rel, const EscrowColumn& column) {
    int count;
    const int64* counters = counters_of(RelationGetRelid(rel), column.name, &count);
    refuse_reservations(rel, column, counters, count);
}

// Locks the counter's row. False: there is none, or its key is another one.
bool lock_counter_value(Relation rel, const EscrowColumn& column, int64 id, int64* value) {
    Oid table;
    NameData name;
    text* key;
    bool found = false;
    if (column.has_key && read_counter(id, &table, &name, &key))
        as_untrusted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, [&] {
            const EscrowCounter* counter = counter_of_name(rel, table_info(rel), &column, id, key);
            found = counter != nullptr && lock_value(*counter, true, value);
        });
    return found;
}

// As many parts as it takes.
void insert_returns(const EscrowColumn& column, int64 counter, AmountSum sum) {
    while (!sum.is_zero()) {
        int64 amount = sum.wraps > 0 ? PG_INT64_MAX : sum.low;
        insert_part(column, counter, {amount, -amount});
        sum.add(-amount);
    }
}

// By parts that are then folded. The lock keeps all others from loading the counters.
void return_expired_of_column(Relation rel, const EscrowColumn& column) {
    int count;
    const int64* counters = counters_of(RelationGetRelid(rel), column.name, &count);
    for (int i = 0; i < count; i++) {
        AmountSum sum = {};
        end_expired(column, counters[i], &sum);
        int64 value;
        if (!sum.is_zero() && lock_counter_value(rel, column, counters[i], &value))
            insert_returns(column, counters[i], sum);
    }
}

// Those of a column that is gone.
void forget_expired_of_column(Oid relid, const EscrowColumn& column) {
    int count;
    const int64* counters = counters_of(relid, column.name, &count);
    forget_expired(counters, count);
}

// Whether the counter's row can get back what is reserved.
bool fits_reserved(Relation rel, const EscrowColumn& column, int64 id, int64 greatest) {
    AmountSum total = sum_of_reservations(column, id);
    int64 value;
    if (total.is_zero() || !lock_counter_value(rel, column, id, &value))
        return true;
    total.add(value);
    return total.is_at_most(greatest);
}

// Reservations last over a change of the limits: what they give back has to fit then. They do not
// last over another key, or where counters were ended by other means than disable_escrow.
void check_reservations(Relation rel, const TableInfo* info, const EscrowColumn* present,
                        const Request& request) {
    EscrowColumn before = {};
    namestrcpy(&before.name, request.column);
    if (present == nullptr || !present->has_key) {
        Form_pg_attribute attribute = TupleDescAttr(info->columns, request.attnum - 1);
        amount_scale(attribute->atttypid, attribute->atttypmod, &before.scale);
        return_expired_of_column(rel, before);
        refuse_reservations_of(rel, before);
        return;
    }
    int count;
    const int64* counters = counters_of(info->relid, present->name, &count);
    for (int i = 0; i < count; i++) {
        if (!fits_reserved(rel, *present, counters[i], request.greatest))
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("column \"%s\" of table \"%s\" has reservations for which the "
                                   "maximum leaves no room",
                                   request.column, RelationGetRelationName(rel)),
                            errhint("Confirm or cancel them, or wait until they have expired. View "
                                    "interlock.reservations shows them.")));
    }
}

} // namespace
