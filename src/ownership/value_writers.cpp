#include "ownership/value_writers.h"

#include "execution/stored_row.h"
#include "execution/write.h"
#include "ownership/errors.h"
#include "ownership/writer.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/scope.h"
#include "table/plan.h"
#include "table/settings_json.h"

namespace interlock::ownership {

namespace {

struct Release {
    Oid root;
    int trigger_depth; // of the call
};

struct ReleaseCall {
    Relation rel;
    const TableInfo* info;
    const Ownership* ownership;
    Key key;
    Bitmapset* columns;
};

} // namespace

static const Release* current_release = nullptr;

static ReleaseCall open_release(const Arguments& arguments);
static StoredRow lock_row(const ReleaseCall& call);
static void require_writer(const ReleaseCall& call, const StoredRow& row, NullableDatum writers);
static void write(const ReleaseCall& call, NullableDatum writers);

extern "C" {
PG_FUNCTION_INFO_V1(release_values);

// release_values(rel, key, columns)
Datum release_values(PG_FUNCTION_ARGS) {
    ReleaseCall call = open_release(Arguments(fcinfo));
    StoredRow row = lock_row(call);
    NullableDatum writers;
    writers.value = stored_value(row, call.ownership->value_writers, &writers.isnull);
    require_writer(call, row, writers);
    NullableDatum left = with_writer(call.info, writers, call.columns, nullptr);
    bool releases = !same_value(
        TupleDescAttr(call.info->columns, call.ownership->value_writers - 1), writers, left);
    if (releases)
        write(call, left);
    close_table(call.rel);
    PG_RETURN_BOOL(releases);
}
}

static ReleaseCall open_release(const Arguments& arguments) {
    ReleaseCall call = {};
    call.rel = open_table(arguments.relation(0), RowExclusiveLock);
    call.info = table_info(call.rel);
    NameList columns = arguments.names(2, "columns");
    if (columns.count == 0)
        refuse_empty("columns");
    for (const char* name : columns) {
        AttrNumber column = column_number(call.rel, name);
        const ColumnRule* rule = rule_of(call.info, column);
        if (rule == nullptr || !rule->once_changed)
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("values of column \"%s\" of table \"%s\" have no writers", name,
                                   RelationGetRelationName(call.rel)),
                            errhint("The table's owner declares them with interlock.own_columns "
                                    "and once_changed => true.")));
        call.columns = bms_add_member(call.columns, column);
    }
    call.ownership = usable_ownership(call.rel, call.info);
    call.key = key_argument(arguments, 1, call.rel, call.info);
    return call;
}

static StoredRow lock_row(const ReleaseCall& call) {
    StoredRow row =
        read_locked_row(call.rel, call.info, call.key,
                        with_table_key(call.rel, call.info, call.key,
                                       bms_make_singleton(call.ownership->value_writers)));
    if (!row.found)
        raise_no_such_row(call.rel, call.info, call.key);
    return row;
}

static bool may_release(const Ownership* ownership, const Writer& writer, const char* owner) {
    return (writer.name != nullptr && (writer.force || strcmp(writer.name, owner) == 0)) ||
           owns_relation(ownership->root, GetUserId());
}

static void require_writer(const ReleaseCall& call, const StoredRow& row, NullableDatum writers) {
    Writer writer = current_writer();
    for (int column = -1; (column = bms_next_member(call.columns, column)) >= 0;) {
        const char* name = column_name(call.info, static_cast<AttrNumber>(column));
        const char* owner = writer_of_value(writers, name);
        if (owner == nullptr || may_release(call.ownership, writer, owner))
            continue;
        count(call.info, CountedKind::kOwnership, Counter::kRefusals);
        const char* key = key_to_text(call.info, *table_key(call.info, call.key, row));
        raise_column_owned(
            {call.rel, call.info, key, bms_make_singleton(column), owner, writer.name, true});
    }
}

static void write(const ReleaseCall& call, NullableDatum writers) {
    RowWrite write({call.rel, call.info, &call.key, CountedKind::kOwnership},
                   PlanKind("release_values"));
    AttrNumber column = call.ownership->value_writers;
    write.set(column, write.terms.stored_value(column, writers));
    Release release = {call.ownership->root, trigger_depth()};
    bool written = false;
    with_current(&current_release, static_cast<const Release*>(&release),
                 [&] { written = write_row(write); });
    if (!written)
        raise_suppressed(call.rel);
}

bool is_release(const Ownership* ownership) {
    return current_release != nullptr && current_release->root == ownership->root &&
           trigger_depth() == current_release->trigger_depth + 1;
}

static JsonbContainer* object_in(NullableDatum writers) {
    if (writers.isnull)
        return nullptr;
    Jsonb* json = DatumGetJsonbP(writers.value);
    return JB_ROOT_IS_OBJECT(json) ? &json->root : nullptr;
}

const char* writer_of_value(NullableDatum writers, const char* column) {
    JsonbContainer* object = object_in(writers);
    const JsonbValue* writer = object != nullptr ? member_of(object, column) : nullptr;
    return writer != nullptr && writer->type == jbvString
               ? pnstrdup(writer->val.string.val, writer->val.string.len)
               : nullptr;
}

NullableDatum with_writer(const TableInfo* info, NullableDatum writers, const Bitmapset* columns,
                          const char* writer) {
    JsonbContainer* object = object_in(writers);
    JsonObject result;
    bool is_empty = true;
    if (object != nullptr)
        each_member(object, [&](const char* name, const JsonbValue* value) {
            if (bms_is_member(find_attribute(info->columns, name), columns))
                return;
            result.add(name, *value);
            is_empty = false;
        });
    for (int column = -1; writer != nullptr && (column = bms_next_member(columns, column)) >= 0;) {
        result.add(column_name(info, static_cast<AttrNumber>(column)), writer);
        is_empty = false;
    }
    if (is_empty)
        return {0, true};
    return {JsonbPGetDatum(result.finish()), false};
}

void warn_of_former_writers(Oid relid, const char* column) {
    run_command(psprintf("SELECT FROM %s WHERE %s OPERATOR(pg_catalog.?) %s LIMIT 1",
                         qualified_name(relid), kValueWriters, quote_literal_cstr(column)));
    if (SPI_processed > 0)
        ereport(WARNING,
                (errmsg("values of column \"%s\" of table \"%s\" belong to writers already", column,
                        get_rel_name(relid)),
                 errdetail("Column \"%s\" has these writers since an earlier call.", kValueWriters),
                 errhint("To let others change such a value, call interlock.release_values for its "
                         "row, as the owner of the table.")));
}

} // namespace interlock::ownership
