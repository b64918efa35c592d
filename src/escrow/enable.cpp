// Enabling and disabling escrow counters: checks the column and creates the triggers. ACCESS
// EXCLUSIVE on the table excludes all that adjust, also prepared transactions (E10).

#include "escrow/change.h"
#include "escrow/column_check.h"
#include "escrow/counted_columns.h"
#include "escrow/fold.h"
#include "escrow/reservation.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/last_word.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/trigger_state.h"

namespace interlock::escrow {

namespace {

struct TriggerKind {
    const char* prefix;
    const char* function;
    const char* event;
};

} // namespace

constexpr TriggerKind kRowTrigger = {kEscrowTriggerPrefix, "escrow_trigger",
                                     "BEFORE INSERT OR UPDATE OR DELETE"};
constexpr TriggerKind kTruncateTrigger = {"zzz_interlock_truncate", "escrow_truncate_trigger",
                                          "BEFORE TRUNCATE"};

namespace {

struct Request : EscrowSettings {
    AttrNumber attnum;
    int64 greatest; // of the limits and those of the type
};

} // namespace

static Request read_request(const Arguments& arguments, Relation rel);
static void check_values(Oid relid, const Request& request);

namespace {

// A trigger's name, and the command that creates or replaces it.
struct TriggerCommand {
    const char* name;
    char* command;
};

} // namespace

static TriggerCommand create_trigger(Relation rel, const TriggerKind& kind, const List* arguments);
static void set_columns(const TableInfo* info, Request* request);
static void run_trigger_command(Oid relid, AttrNumber attnum, const Bitmapset* key,
                                const TriggerCommand& trigger);
static List* drops_of_triggers(Relation rel, const char* label);
static void run_commands(const List* commands);
static void refuse_gone_column(Relation rel, const TableInfo* info);
static void refuse_taken_label(Relation rel, const TableInfo* info, const Request& request);
static const EscrowColumn* counted_column(Relation rel, const TableInfo* info, AttrNumber attnum);
static const EscrowColumn* column_to_disable(Relation rel, const TableInfo* info,
                                             const char* column);
static void end_counters(Relation rel, const EscrowColumn& column);
static void give_label(Relation rel, const EscrowColumn& column, const char* label);
static void return_expired_of_column(Relation rel, const EscrowColumn& column);
static void forget_expired_of_column(Oid relid, const EscrowColumn& column);
static void refuse_reservations_of(Relation rel, const EscrowColumn& column);
static void check_reservations(Relation rel, const TableInfo* info, const EscrowColumn* present,
                               const Request& request);
static void forget_old_parts(Oid relid, const char* column);

extern "C" {
PG_FUNCTION_INFO_V1(enable_escrow);
PG_FUNCTION_INFO_V1(disable_escrow);

// enable_escrow(rel, column_name, minimum, maximum, plain_updates, fold_moves_version, notify)
Datum enable_escrow(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    Oid relid = RelationGetRelid(rel);
    TableChange change = begin_change(arguments, rel);
    const TableInfo* info = table_info(rel);
    Request request = read_request(arguments, rel);
    check_table_kind(rel, info);
    refuse_gone_column(rel, info);
    refuse_taken_label(rel, info, request);
    const EscrowColumn* present = counted_column(rel, info, request.attnum);
    if (escrow_of(info, request.attnum) == nullptr)
        check_column(rel, info, request.attnum);
    if (present != nullptr)
        end_counters(rel, *present);
    check_reservations(rel, info, present, request);
    List* drops = NIL;
    if (present != nullptr && strcmp(NameStr(present->label), request.label) != 0) {
        drops = drops_of_triggers(rel, NameStr(present->label));
        give_label(rel, *present, request.label);
    }
    set_columns(info, &request);
    TriggerCommand on_row = create_trigger(rel, kRowTrigger, trigger_arguments(request));
    List* columns = add_argument(add_argument(NIL, request.label), request.numbers);
    TriggerCommand on_truncate =
        create_trigger(rel, kTruncateTrigger, add_names(columns, request.key));
    constexpr int16 kEvents = TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE;
    require_last_word(rel, info, kEvents);
    require_last_word_of(rel, on_row.name, kEvents);
    const Bitmapset* key = bms_copy(info->key.attnums);
    close_table(rel);
    with_spi([&] {
        as_configuring_owner(relid, [&] { check_values(relid, request); });
        run_commands(drops);
        run_trigger_command(relid, request.attnum, key, on_row);
        run_trigger_command(relid, request.attnum, key, on_truncate);
    });
    forget_old_parts(relid, request.label);
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
    List* drops = drops_of_triggers(rel, NameStr(column->label));
    TableChange change = begin_change(arguments, rel);
    close_table(rel);
    with_spi([&] { run_commands(drops); });
    forget_old_parts(relid, NameStr(column->label));
    record_change(change);
    PG_RETURN_VOID();
}
}

static void run_commands(const List* commands) {
    ListCell* cell;
    foreach (cell, commands)
        run_command(static_cast<char*>(lfirst(cell)));
}

// Nobody says whether a plain write that came after them knew of them; and the oid of a table that
// was dropped may be that of another one.
static void forget_old_parts(Oid relid, const char* column) {
    NameData name;
    namestrcpy(&name, column);
    int64 count = forget_counters(relid, name);
    if (count > 0)
        ereport(WARNING,
                (errmsg("discarded " INT64_FORMAT " changes of escrow counters in column \"%s\" of "
                        "table \"%s\" that were not folded",
                        count, column, get_rel_name(relid)),
                 errdetail("The column or the triggers of its counters were dropped without "
                           "interlock.disable_escrow(). The counters start with the values of "
                           "the rows.")));
}

static const char* text_of_limit(const EscrowColumn& column, int64 limit) {
    return DatumGetCString(DirectFunctionCall1(numeric_out, numeric_of(column, limit)));
}

static Request read_request(const Arguments& arguments, Relation rel) {
    Request request = {};
    request.attnum = column_number(rel, arguments.name(1, "column_name"));
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), request.attnum - 1);
    request.label = pstrdup(NameStr(attribute->attname));
    EscrowColumn column = {};
    column.type = attribute->atttypid;
    if (!amount_scale(attribute->atttypid, attribute->atttypmod, &column.scale))
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("column \"%s\" of table \"%s\" cannot have escrow counters: its type is %s",
                        request.label, RelationGetRelationName(rel),
                        format_type_with_typemod(attribute->atttypid, attribute->atttypmod)),
                 errhint("Its type must be smallint, integer, bigint or numeric(p, s) with at most "
                         "18 digits, and no domain.")));
    int64 least = amount_argument(arguments, 2, "minimum", column);
    request.least_text = text_of_limit(column, least);
    request.most_text = "";
    request.greatest = range_of_type(attribute->atttypid, attribute->atttypmod).most;
    if (!arguments.is_null(3)) {
        int64 most = amount_argument(arguments, 3, "maximum", column);
        if (most < least)
            refuse_argument("maximum", "must not be less than the minimum");
        request.most_text = text_of_limit(column, most);
        request.greatest = Min(request.greatest, most);
    }
    std::string_view word = arguments.view(4, "plain_updates");
    if (!parse_plain_updates(word, &request.plain_updates))
        refuse_value("plain_updates", word, "It is 'reject' or 'delta'.");
    request.fold_moves_version = arguments.boolean(5, "fold_moves_version");
    request.notify = notify_argument(arguments, 6);
    return request;
}

static void check_values(Oid relid, const Request& request) {
    const char* column = quote_identifier(request.label);
    run_command(psprintf(
        "SELECT pg_catalog.count(*) FROM ONLY %s WHERE %s IS NULL OR %s::pg_catalog.numeric "
        "OPERATOR(pg_catalog.<) %s::pg_catalog.numeric OR %s::pg_catalog.numeric "
        "OPERATOR(pg_catalog.=) 'NaN'%s",
        qualified_name(relid), column, column, quote_literal_cstr(request.least_text), column,
        request.most_text[0] == '\0'
            ? ""
            : psprintf(" OR %s::pg_catalog.numeric OPERATOR(pg_catalog.>) %s::pg_catalog.numeric",
                       column, quote_literal_cstr(request.most_text))));
    const char* count = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
    if (strcmp(count, "0") != 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("%s rows of table \"%s\" have a value of column \"%s\" outside of "
                               "the limits",
                               count, get_rel_name(relid), request.label)));
}

// Their numbers, and the names of the key's columns.
static void set_columns(const TableInfo* info, Request* request) {
    CountedColumns columns = {request->attnum, info->key.count, {}};
    auto** names = static_cast<const char**>(palloc(sizeof(char*) * (info->key.count + 1)));
    for (int i = 0; i < info->key.count; i++) {
        columns.key[i] = info->key.columns[i].attnum;
        names[i] = column_name(info, columns.key[i]);
    }
    request->numbers = counted_columns_argument(columns);
    request->key = {names, info->key.count};
}

static TriggerCommand create_trigger(Relation rel, const TriggerKind& kind, const List* arguments) {
    const char* name = column_trigger_name(rel, kind.prefix, kind.function,
                                           static_cast<const char*>(linitial(arguments)));
    if (&kind == &kRowTrigger && !sorts_last(name))
        raise_forged(rel, name, "enable_escrow"); // arguments that are no counter's
    return {name, psprintf("CREATE OR REPLACE TRIGGER %s %s ON %s FOR EACH %s EXECUTE FUNCTION "
                           "%s(%s)",
                           quote_identifier(name), kind.event, qualified_name(rel),
                           &kind == &kRowTrigger ? "ROW" : "STATEMENT",
                           own_trigger_function_name(kind.function), arguments_sql(arguments))};
}

static void run_trigger_command(Oid relid, AttrNumber attnum, const Bitmapset* key,
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

// Renamed in a restored copy, as a rule: perhaps it is this one.
static void refuse_gone_column(Relation rel, const TableInfo* info) {
    each_escrow(info, [&](const EscrowColumn& column) {
        if (column.attnum == InvalidAttrNumber && column.well_formed)
            raise_column_gone(rel, column);
    });
}

// Two columns of one label would share their counters.
static void refuse_taken_label(Relation rel, const TableInfo* info, const Request& request) {
    const EscrowColumn* other = escrow_of_label(info, request.label);
    if (other != nullptr && other->attnum != request.attnum)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" was renamed, and its escrow counters "
                               "still have its former name \"%s\"",
                               NameStr(other->name), RelationGetRelationName(rel), request.label),
                        errhint("%s", call_of_enable(rel, *other))));
}

static const EscrowColumn* counted_column(Relation rel, const TableInfo* info, AttrNumber attnum) {
    const EscrowColumn* column = escrow_of(info, attnum);
    return column != nullptr ? column : escrow_left_behind(rel, info, attnum);
}

// By the name that the column has; one that is gone by its former name.
static const EscrowColumn* column_to_disable(Relation rel, const TableInfo* info,
                                             const char* column) {
    AttrNumber attnum = find_attribute(info->columns, column);
    const EscrowColumn* found =
        attnum != InvalidAttrNumber ? counted_column(rel, info, attnum) : nullptr;
    if (found == nullptr)
        found = escrow_of_label(info, column);
    if (found == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" has no escrow counters", column,
                               RelationGetRelationName(rel))));
    return found;
}

// All parts are decided, and the lock keeps others out.
// But the fold has only the parts that its snapshot has.
static void end_counters(Relation rel, const EscrowColumn& column) {
    bool is_whole = escrow_of(table_info(rel), column.attnum) != nullptr;
    if (is_whole)
        require_own_trigger(rel, table_info(rel), column);
    fold_column(rel, column, !is_whole);
    if (is_whole && has_parts(RelationGetRelid(rel), column))
        raise_concurrent_update();
}

// Only counters with reservations are left.
static void give_label(Relation rel, const EscrowColumn& column, const char* label) {
    Oid relid = RelationGetRelid(rel);
    EscrowColumn former = {}; // that had the name
    namestrcpy(&former.label, label);
    former.name = former.label;
    forget_expired_of_column(relid, former);
    refuse_reservations_of(rel, former);
    forget_old_parts(relid, label);
    forget_old_parts(relid, NameStr(column.label));
    rename_counters(relid, column.label, former.label);
}

static List* drops_of_triggers(Relation rel, const char* label) {
    List* drops = NIL;
    for (const TriggerKind* kind : {&kRowTrigger, &kTruncateTrigger}) {
        char* command = drop_of_column_trigger(rel, kind->function, label);
        if (command != nullptr)
            drops = lappend(drops, command);
    }
    return drops;
}

static void refuse_reservations_of(Relation rel, const EscrowColumn& column) {
    int count;
    const int64* counters = counters_of(RelationGetRelid(rel), column.label, &count);
    refuse_reservations(rel, column, counters, count);
}

// Locks the counter's row. False: there is none, or its key is another one.
static bool lock_counter_value(Relation rel, const EscrowColumn& column, int64 id, int64* value) {
    Oid table;
    NameData name;
    text* key;
    bool found = false;
    if (read_counter(id, &table, &name, &key))
        as_untrusted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, [&] {
            const EscrowCounter* counter = counter_of_name(rel, table_info(rel), &column, id, key);
            found = counter != nullptr && lock_value(*counter, true, value);
        });
    return found;
}

// As many parts as it takes.
static void insert_returns(const EscrowColumn& column, int64 counter, AmountSum sum) {
    while (!sum.is_zero()) {
        int64 amount = sum.wraps > 0 ? PG_INT64_MAX : sum.low;
        insert_part(column, counter, {amount, -amount});
        sum.add(-amount);
    }
}

// By parts that are then folded. The lock keeps all others from loading the counters.
static void return_expired_of_column(Relation rel, const EscrowColumn& column) {
    int count;
    const int64* counters = counters_of(RelationGetRelid(rel), column.label, &count);
    for (int i = 0; i < count; i++) {
        AmountSum sum = {};
        end_expired(column, counters[i], &sum);
        int64 value;
        if (!sum.is_zero() && lock_counter_value(rel, column, counters[i], &value))
            insert_returns(column, counters[i], sum);
    }
}

// Those of a column that is gone.
static void forget_expired_of_column(Oid relid, const EscrowColumn& column) {
    int count;
    const int64* counters = counters_of(relid, column.label, &count);
    forget_expired(counters, count);
}

// Whether the counter's row can get back what is reserved.
static bool fits_reserved(Relation rel, const EscrowColumn& column, int64 id, int64 greatest) {
    AmountSum total = sum_of_reservations(column, id);
    int64 value;
    if (total.is_zero() || !lock_counter_value(rel, column, id, &value))
        return true;
    total.add(value);
    return total.is_at_most(greatest);
}

// Whether the counters go by the table's key, as they will from now on.
static bool has_table_key(const TableInfo* info, const EscrowColumn& column) {
    if (column.key_count != info->key.count)
        return false;
    for (int i = 0; i < column.key_count; i++)
        if (column.key[i] != info->key.columns[i].attnum)
            return false;
    return true;
}

// Reservations last over a change of the limits: the amounts that they return have to fit then.
// They do not last over another key, or where counters were ended by other means than
// disable_escrow.
static void check_reservations(Relation rel, const TableInfo* info, const EscrowColumn* present,
                               const Request& request) {
    if (present == nullptr) {
        EscrowColumn before = {};
        namestrcpy(&before.label, request.label);
        before.name = before.label;
        forget_expired_of_column(info->relid, before);
        refuse_reservations_of(rel, before);
        return;
    }
    if (escrow_of(info, request.attnum) == nullptr || !has_table_key(info, *present)) {
        return_expired_of_column(rel, *present);
        end_counters(rel, *present);
        refuse_reservations_of(rel, *present);
        return;
    }
    int count;
    const int64* counters = counters_of(info->relid, present->label, &count);
    for (int i = 0; i < count; i++) {
        if (!fits_reserved(rel, *present, counters[i], request.greatest))
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the maximum for column \"%s\" of table \"%s\" is too small for "
                                   "its reservations",
                                   request.label, RelationGetRelationName(rel)),
                            errhint("Confirm or cancel them, or wait until they have expired. View "
                                    "interlock.reservations shows them.")));
    }
}

} // namespace interlock::escrow
