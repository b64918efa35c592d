// Enabling and disabling markers: columns, index and trigger.

#include "marker/marker.h"
#include "marker/scan.h"

#include "server/arguments.h"
#include "server/notify.h"
#include "sweeper/deadline.h"
#include "table/configuration_audit.h"
#include "table/last_word.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/trigger_state.h"

namespace interlock::marker {

constexpr const char* kTriggerName = "zzz_interlock_marker";
constexpr const char* kNotifyTriggerName = "zzz_interlock_marker_notify";

namespace {

// The arguments of enable_marker.
struct Request : MarkerSettings {
    Notify notify;
    bool names_status;                 // else the column has the default name
    const char* present[kMarkerRoles]; // those of the marker; null: none, or it is gone
};

} // namespace

static Request read_request(const Arguments& arguments);
static void read_columns(const Arguments& arguments, const Marker* present, Request* request);
static void check_columns(Relation rel, const Request& request);
static void add_missing_columns(Oid relid, const char* table, const Request& request);
static void date_open_markers(const char* table, const Request& request);
static void create_sweep_index(Oid relid, const char* table, const Request& request);
static const char* trigger_name(Relation rel, const Marker* present);
static void create_marker_trigger(Oid relid, const char* table, const char* trigger,
                                  const Request& request);
static const char* notify_trigger_name(Relation rel);
static void set_notify_trigger(Oid relid, const char* table, const char* trigger, Notify notify);
static void report_open_markers(const char* table, const Request& request);
static void drop_sweep_indexes(Oid relid, AttrNumber kept);

extern "C" {
PG_FUNCTION_INFO_V1(enable_marker);
PG_FUNCTION_INFO_V1(disable_marker);

Datum enable_marker(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Request request = read_request(arguments);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    Oid relid = RelationGetRelid(rel);
    const Marker* present = marker_of(table_info(rel));
    refuse_partition(rel, present != nullptr && present->is_clone);
    read_columns(arguments, present, &request);
    check_columns(rel, request);
    const char* trigger = trigger_name(rel, present);
    require_last_word_of(rel, trigger, TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE);
    const char* notify_trigger = notify_trigger_name(rel);
    char* table = qualified_name(rel);
    close_table(rel); // the server refuses to alter a table that is open in this session

    with_spi([&] {
        as_configuring_owner(relid, [&] {
            refuse_moved_marker(relid, request.present, request.columns);
            refuse_foreign_status(relid, request.columns);
            refuse_unadopted_status(relid, request.columns, request.names_status);
        });
        add_missing_columns(relid, table, request);
        as_configuring_owner(relid, [&] { date_open_markers(table, request); });
        if (request.sweep_index)
            create_sweep_index(relid, table, request);
        else
            drop_sweep_indexes(relid, InvalidAttrNumber);
        create_marker_trigger(relid, table, trigger, request);
        set_notify_trigger(relid, table, notify_trigger, request.notify);
        as_configuring_owner(relid, [&] { report_open_markers(table, request); });
    });
    record_change(change);
    PG_RETURN_VOID();
}

Datum disable_marker(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    Oid relid = RelationGetRelid(rel);
    if (marker_of(table_info(rel)) == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" has no markers", RelationGetRelationName(rel))));
    refuse_partition(rel, marker_of(table_info(rel))->is_clone);
    char* table = qualified_name(rel);
    const char* trigger = quote_identifier(trigger_name(rel, marker_of(table_info(rel))));
    const char* notify_trigger = notify_trigger_name(rel);
    close_table(rel);

    with_spi([&] {
        run_command(psprintf("DROP TRIGGER %s ON %s", trigger, table));
        set_notify_trigger(relid, table, notify_trigger, Notify::kOff);
        drop_sweep_indexes(relid, InvalidAttrNumber);
    });
    record_change(change);
    PG_RETURN_VOID();
}
}

static Request read_request(const Arguments& arguments) {
    Request request = {};
    request.ttl = duration_argument(arguments.interval(1, "ttl"), "ttl");
    request.enforce = arguments.boolean(2, "enforce");
    request.notify = notify_argument(arguments, 3);
    request.sweep_index = arguments.boolean(4 + kMarkerRoles, "sweep_index");
    const char* take_over = arguments.string(5 + kMarkerRoles, "take_over");
    if (!parse_take_over(take_over, &request.take_over))
        refuse_value("take_over", take_over, "Use 'expired', 'operators' or 'allow'.");
    return request;
}

static void read_columns(const Arguments& arguments, const Marker* present, Request* request) {
    constexpr const char* names[kMarkerRoles] = {"status_column", "holder_column", "time_column",
                                                 "until_column", "reason_column"};
    request->names_status = !arguments.is_null(4 + kStatus);
    for (int role = 0; role < kMarkerRoles; role++) {
        request->columns[role] = arguments.is_null(4 + role)
                                     ? pstrdup(unnamed_column(present, role))
                                     : arguments.name(4 + role, names[role]);
        if (present != nullptr && present->columns[role].attnum != InvalidAttrNumber)
            request->present[role] = pstrdup(NameStr(present->columns[role].name));
        for (int other = 0; other < role; other++)
            if (strcmp(request->columns[role], request->columns[other]) == 0)
                ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                                errmsg("column \"%s\" cannot have two roles in a marker",
                                       request->columns[role])));
    }
}

static const char* role_types(int role) {
    switch (role) {
    case kStatus:
        return "smallint, integer or bigint";
    case kTime:
        return "timestamp with or without time zone";
    case kUntil:
        return "timestamp with time zone";
    default:
        return "text or character varying";
    }
}

static void check_columns(Relation rel, const Request& request) {
    const TableInfo* info = table_info(rel);
    for (int role = 0; role < kMarkerRoles; role++) {
        require_column_name(rel, request.columns[role]);
        AttrNumber attnum = find_attribute(info->columns, request.columns[role]);
        if (attnum == InvalidAttrNumber)
            continue;
        Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
        if (!fits_role(role, attribute->atttypid))
            ereport(
                ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("column \"%s\" of table \"%s\" cannot be part of a marker: its type is %s",
                        request.columns[role], RelationGetRelationName(rel),
                        format_type_be(attribute->atttypid)),
                 errhint("Its type must be %s, and no domain; alter it, or name another column.",
                         role_types(role))));
        if (attribute->attgenerated != '\0' || attribute->attidentity != '\0' ||
            bms_is_member(attnum, info->key.attnums))
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                     errmsg("column \"%s\" of table \"%s\" cannot be part of a marker: it is "
                            "generated or part of the key",
                            request.columns[role], RelationGetRelationName(rel))));
    }
}

static bool is_of_marker(const Request& request, const char* name) {
    for (const char* column : request.present)
        if (column != nullptr && strcmp(column, name) == 0)
            return true;
    return false;
}

static void add_name(StringInfo names, const char* name) {
    appendStringInfo(names, "%s\"%s\"", names->len > 0 ? ", " : "", name);
}

// So that the owner of a hand-made lock sees which of its columns the marker does not use.
static void report_columns(Oid relid, const char* adopted, const char* added) {
    if (adopted[0] == '\0')
        return;
    ereport(NOTICE,
            (errcode(ERRCODE_DUPLICATE_COLUMN),
             errmsg("columns of table \"%s\" already exist, adopting them: %s%s%s",
                    get_rel_name(relid), adopted, added[0] != '\0' ? "; added: " : "", added),
             errhint("To adopt columns of other names, name them in the arguments "
                     "status_column, holder_column, time_column, until_column and "
                     "reason_column.")));
}

static void add_missing_columns(Oid relid, const char* table, const Request& request) {
    constexpr const char* definitions[kMarkerRoles] = {"pg_catalog.int2 NOT NULL DEFAULT 0",
                                                       "pg_catalog.text", "pg_catalog.timestamptz",
                                                       "pg_catalog.timestamptz", "pg_catalog.text"};
    StringInfoData adopted, added;
    initStringInfo(&adopted);
    initStringInfo(&added);
    for (int role = 0; role < kMarkerRoles; role++) {
        const char* column = request.columns[role];
        if (get_attnum(relid, column) == InvalidAttrNumber) {
            run_command(psprintf("ALTER TABLE %s ADD COLUMN %s %s", table, quote_identifier(column),
                                 definitions[role]));
            add_name(&added, column);
        } else if (!is_of_marker(request, column)) {
            add_name(&adopted, column);
        }
    }
    report_columns(relid, adopted.data, added.data);
}

// Rows that were marked before there were deadlines get one, counted from now.
static void date_open_markers(const char* table, const Request& request) {
    run_command(
        psprintf("UPDATE %s SET %s = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) "
                 "'" INT64_FORMAT " microseconds'::pg_catalog.interval "
                 "WHERE %s OPERATOR(pg_catalog.=) 1 AND %s IS NULL",
                 table, quote_identifier(request.columns[kUntil]), request.ttl,
                 quote_identifier(request.columns[kStatus]),
                 quote_identifier(request.columns[kUntil])));
}

// Fetching the predicate itself would plan an expression of the table's owner.
static bool is_partial(Relation index) {
    return !heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr);
}

// An index of the owner serves as well, if it has all marked rows and leads with their deadline.
static bool finds_deadlines(Relation index, AttrNumber until, AttrNumber status) {
    return index->rd_index->indisvalid && index->rd_rel->relam == BTREE_AM_OID &&
           index->rd_index->indkey.values[0] == until &&
           (!is_partial(index) || is_of_marked_rows(index->rd_indextuple, status));
}

// Calls visit(index) for each index of the table.
template <typename Visit>
static void each_index(Oid relid, Visit&& visit) {
    Relation rel = table_open(relid, AccessShareLock);
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        Relation index = index_open(lfirst_oid(cell), AccessShareLock);
        visit(index);
        index_close(index, AccessShareLock);
    }
    table_close(rel, AccessShareLock);
}

// Drops our indexes except those that lead with the column `kept`.
static void drop_sweep_indexes(Oid relid, AttrNumber kept) {
    const char* schema = get_namespace_name(get_rel_namespace(relid));
    List* names = NIL;
    each_index(relid, [&](Relation index) {
        if (is_sweep_index(index->rd_indextuple) && index->rd_index->indkey.values[0] != kept)
            names = lappend(names, pstrdup(RelationGetRelationName(index)));
    });
    ListCell* cell;
    foreach (cell, names)
        run_command(psprintf("DROP INDEX %s",
                             quote_qualified_identifier(schema, static_cast<char*>(lfirst(cell)))));
}

// The sweeper finds expired markers, and the next deadline, without reading the table.
static void create_sweep_index(Oid relid, const char* table, const Request& request) {
    AttrNumber until = get_attnum(relid, request.columns[kUntil]);
    AttrNumber status = get_attnum(relid, request.columns[kStatus]);
    drop_sweep_indexes(relid, until);
    bool found = false;
    each_index(relid, [&](Relation index) {
        found =
            found || finds_deadlines(index, until, status) || is_sweep_index(index->rd_indextuple);
    });
    if (found)
        return;
    char* name = ChooseRelationName(get_rel_name(relid), nullptr, kSweepIndexSuffix,
                                    get_rel_namespace(relid), false);
    run_command(psprintf("CREATE INDEX %s ON %s (%s) WHERE %s OPERATOR(pg_catalog.=) 1",
                         quote_identifier(name), table, quote_identifier(request.columns[kUntil]),
                         quote_identifier(request.columns[kStatus])));
}

static const char* trigger_name(Relation rel, const Marker* present) {
    return name_to_create(rel, present, kTriggerName, "markers", "enable_marker");
}

static void create_marker_trigger(Oid relid, const char* table, const char* trigger,
                                  const Request& request) {
    replace_trigger(
        relid, trigger,
        psprintf("CREATE OR REPLACE TRIGGER %s BEFORE INSERT OR UPDATE OR DELETE ON %s "
                 "FOR EACH ROW EXECUTE FUNCTION %s(%s)",
                 quote_identifier(trigger), table, own_trigger_function_name("marker_trigger"),
                 arguments_sql(trigger_arguments(request))));
}

static const char* notify_trigger_name(Relation rel) {
    const Trigger* present = find_trigger(rel, "marker_notify_trigger");
    return present != nullptr ? present->tgname : kNotifyTriggerName;
}

static void set_notify_trigger(Oid relid, const char* table, const char* trigger, Notify notify) {
    if (notify != Notify::kOff)
        replace_trigger(
            relid, trigger,
            psprintf("CREATE OR REPLACE TRIGGER %s AFTER INSERT OR UPDATE OR DELETE ON %s "
                     "FOR EACH ROW EXECUTE FUNCTION %s(%s)",
                     quote_identifier(trigger), table,
                     own_trigger_function_name("marker_notify_trigger"),
                     notify == Notify::kFull ? "'full'" : ""));
    else
        drop_trigger(relid, table, trigger);
}

static void report_open_markers(const char* table, const Request& request) {
    run_command(psprintf("SELECT pg_catalog.min(%s) FROM %s WHERE %s OPERATOR(pg_catalog.=) 1",
                         quote_identifier(request.columns[kUntil]), table,
                         quote_identifier(request.columns[kStatus])));
    bool is_null;
    Datum earliest = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    if (!is_null)
        note_deadline(DatumGetTimestampTz(earliest));
}

} // namespace interlock::marker
