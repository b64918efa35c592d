#include "table/configuration_audit.h"

#include "table/own_table.h"
#include "table/restricted.h"
#include "table/settings_json.h"
#include "table/subscription.h"

namespace interlock::inline table {

constexpr const char* kAudit = "configuration_audit";

// Under whatever name the schema has: tables can be configured while it is renamed.
static Oid audit() { return get_relname_relid(kAudit, own_schema()); }

static NullableDatum text_or_null(const char* text) {
    return text != nullptr ? NullableDatum{CStringGetTextDatum(text), false}
                           : NullableDatum{0, true};
}

static NullableDatum json_or_null(Jsonb* json) { return {JsonbPGetDatum(json), json == nullptr}; }

static void record(const char* action, const RecordedChange& change) {
    constexpr int kColumns = 8;
    const NullableDatum row[kColumns] = {text_or_null(GetUserNameFromId(GetUserId(), false)),
                                         text_or_null(change.kind),
                                         text_or_null(action),
                                         text_or_null(change.name),
                                         text_or_null(change.table),
                                         text_or_null(change.grantee),
                                         json_or_null(change.before),
                                         json_or_null(change.after)};
    Oid types[kColumns] = {TEXTOID, TEXTOID, TEXTOID,  TEXTOID,
                           TEXTOID, TEXTOID, JSONBOID, JSONBOID};
    Datum values[kColumns];
    char nulls[kColumns];
    for (int i = 0; i < kColumns; i++) {
        values[i] = row[i].value;
        nulls[i] = row[i].isnull ? 'n' : ' ';
    }
    const char* statement = insert_of_line(
        audit(), "changed_by, kind, action, name, table_name, grantee, before, after", kColumns);
    writing_as_owner(table_open(audit(), RowExclusiveLock), TRIGGER_TYPE_INSERT, [&] {
        with_spi(
            [&] { SPI_execute_with_args(statement, kColumns, types, values, nulls, false, 0); });
    });
}

static bool is_same(Jsonb* left, Jsonb* right) {
    return left == nullptr || right == nullptr ? left == right : same_json(left, right);
}

TableChange begin_change(const Arguments& arguments, Relation rel) {
    Oid relid = RelationGetRelid(rel);
    require_enableable(rel, arguments.function_name());
    TableChange change = {relid, arguments.function_name(), qualified_name(rel), {}};
    change.before = read_settings(all_mechanisms(), relid);
    return change;
}

// Only the mechanisms that the call has changed; none if it was repeated.
void record_change(const TableChange& change) {
    CommandCounterIncrement();
    Mechanisms mechanisms = all_mechanisms();
    TableSettings now = read_settings(mechanisms, change.relid);
    JsonObject before;
    JsonObject after;
    for (int i = 0; i < mechanisms.count; i++) {
        if (is_same(change.before.settings[i], now.settings[i]))
            continue;
        before.add(mechanisms.all[i]->name, change.before.settings[i]);
        after.add(mechanisms.all[i]->name, now.settings[i]);
    }
    record(change.action, {.kind = "configuration",
                           .table = change.table,
                           .before = before.finish(),
                           .after = after.finish()});
}

void record_change(const Arguments& arguments, const RecordedChange& change) {
    record(arguments.function_name(), change);
}

} // namespace interlock::inline table
