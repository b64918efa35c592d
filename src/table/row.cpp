#include "table/row.h"

#include "server/arguments.h"
#include "server/error.h"
#include "server/scope.h"
#include "table/populate.h"
#include "table/row_json.h"

namespace interlock::inline table {

constexpr const char* kChangesHint = "Give {\"column\": value, ...}.";

// The table's key is what history and other tables know the row by. Of another key that names the
// row: the call would not find the row again that it has written.
static bool is_in_key(const TableInfo* info, const Key& key, AttrNumber attnum) {
    return bms_is_member(attnum, info->key.attnums) ||
           (!is_named_by_table_key(info, key) && bms_is_member(attnum, key.by->attnums));
}

// Whether the member of `changes` for that column is the value by which the key names the row.
static bool repeats_key(const TableInfo* info, const Key& key, AttrNumber attnum, Jsonb* changes) {
    for (int i = 0; i < key.by->count; i++) {
        const KeyColumn& column = key.by->columns[i];
        if (column.attnum != attnum)
            continue;
        TupleDesc columns = CreateTemplateTupleDesc(1);
        TupleDescInitEntry(columns, 1, column_name(info, attnum), column.type, -1, 0);
        NullableDatum given;
        heap_deform_tuple(record_from_jsonb(columns, changes), columns, &given.value,
                          &given.isnull);
        return equal_values(info->columns, attnum, given, {key.values[i], false});
    }
    return false;
}

// The row may be there, or yet to be inserted under the key.
static int hint_key_column(const TableInfo* info, const Key& key, AttrNumber attnum) {
    if (!bms_is_member(attnum, info->key.attnums))
        return errhint(
            "Leave it out of the changes, give the value that the key has, or name the "
            "row by another key, such as %s.",
            list_of_columns(info, info->key));
    return is_named_by_table_key(info, key)
               ? errhint(
                     "Leave it out of the changes, or give the value that the key has. To "
                     "change the key of a row, use a plain UPDATE.")
               : errhint(
                     "Leave it out of the changes, or name the row by %s. To change the key of "
                     "a row, use a plain UPDATE.",
                     list_of_columns(info, info->key));
}

[[noreturn]] static void refuse_key_column(const TableInfo* info, const Key& key,
                                           AttrNumber attnum) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("column \"%s\" is part of the key and cannot be changed",
                           column_name(info, attnum)),
                    hint_key_column(info, key, attnum)));
}

static void refuse_managed_key(const TableInfo* info, const Key& key, const Bitmapset* managed) {
    if (is_named_by_table_key(info, key) || !bms_overlap(key.by->attnums, managed))
        return;
    int attnum = bms_next_member(bms_intersect(key.by->attnums, managed), -1);
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("column \"%s\" is part of the key and cannot be changed",
                           column_name(info, attnum)),
                    errhint("Name the row by another key, such as %s.",
                            list_of_columns(info, info->key))));
}

// The column of a member; InvalidAttrNumber for one that only repeats the key.
static AttrNumber changeable_column(Relation rel, const TableInfo* info, const Key& key,
                                    const JsonbValue& member, Jsonb* changes,
                                    const Bitmapset* managed) {
    std::string_view given(member.val.string.val, member.val.string.len);
    AttrNumber attnum = find_attribute(info->columns, given);
    if (attnum == InvalidAttrNumber)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_COLUMN),
                 errmsg("column \"%.*s\" of table \"%s\" does not exist", member.val.string.len,
                        member.val.string.val, RelationGetRelationName(rel)),
                 hint_column_name(given)));

    bool in_key = is_in_key(info, key, attnum);
    if (in_key && repeats_key(info, key, attnum, changes))
        return InvalidAttrNumber;
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    const char* name = NameStr(attribute->attname);
    if (attribute->attgenerated != '\0' || attribute->attidentity == ATTRIBUTE_IDENTITY_ALWAYS)
        ereport(ERROR, (errcode(ERRCODE_GENERATED_ALWAYS),
                        errmsg("column \"%s\" can only be updated to DEFAULT", name),
                        errdetail("The server generates its value.")));
    if (in_key)
        refuse_key_column(info, key, attnum);
    if (bms_is_member(attnum, managed))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("column \"%s\" is set by this function itself", name),
                        errhint("Leave it out of the changes.")));
    return attnum;
}

namespace {

// The members of the object, by column.
struct Members {
    Bitmapset* columns;
    JsonbValue* values; // attribute number - 1
};

} // namespace

static Members read_members(Relation rel, const TableInfo* info, const Key& key, Jsonb* json,
                            const Bitmapset* managed) {
    Members members = {};
    members.values = static_cast<JsonbValue*>(palloc(sizeof(JsonbValue) * info->columns->natts));
    JsonbIterator* iterator = JsonbIteratorInit(&json->root);
    JsonbValue value;
    AttrNumber attnum = InvalidAttrNumber;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY) {
            attnum = changeable_column(rel, info, key, value, json, managed);
            if (attnum != InvalidAttrNumber)
                members.columns = bms_add_member(members.columns, attnum);
        } else if (token == WJB_VALUE && attnum != InvalidAttrNumber) {
            members.values[attnum - 1] = value;
        }
    }
    return members;
}

// A number as the input function of an integer type reads it.
static Datum read_integer(PGFunction input, const JsonbValue& value) {
    return DirectFunctionCall1(
        input, DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
}

static bool is_plain_type(Form_pg_attribute attribute) {
    switch (attribute->atttypid) {
    case BOOLOID:
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case NUMERICOID:
    case TEXTOID:
    case VARCHAROID:
        return attribute->atttypmod < 0;
    default:
        return false;
    }
}

// Reads the commonest values as jsonb_populate_record does, by a shorter path. Returns false for
// those.
static bool read_plain(Form_pg_attribute attribute, const JsonbValue& value, Datum* result,
                       bool* is_null) {
    Oid type = attribute->atttypid;
    *is_null = value.type == jbvNull;
    if (!is_plain_type(attribute))
        return false;
    if (*is_null)
        *result = 0;
    else if (value.type == jbvString && (type == TEXTOID || type == VARCHAROID))
        *result =
            PointerGetDatum(cstring_to_text_with_len(value.val.string.val, value.val.string.len));
    else if (value.type == jbvBool && type == BOOLOID)
        *result = BoolGetDatum(value.val.boolean);
    else if (value.type == jbvNumeric && type == NUMERICOID)
        *result = datumCopy(NumericGetDatum(value.val.numeric), false, -1);
    else if (value.type == jbvNumeric && type == INT2OID)
        *result = read_integer(int2in, value);
    else if (value.type == jbvNumeric && type == INT4OID)
        *result = read_integer(int4in, value);
    else if (value.type == jbvNumeric && type == INT8OID)
        *result = read_integer(int8in, value);
    else
        return false;
    return true;
}

static bool read_plainly(const TableInfo* info, const Members& members, Changes* changes) {
    for (int i = 0; i < changes->count; i++) {
        int position = changes->attnums[i] - 1;
        if (!read_plain(TupleDescAttr(info->columns, position), members.values[position],
                        &changes->values[i], &changes->nulls[i]))
            return false;
    }
    return true;
}

static void read_as_record(const TableInfo* info, Jsonb* json, Changes* changes) {
    HeapTuple row = row_from_jsonb(info, json);
    for (int i = 0; i < changes->count; i++)
        changes->values[i] =
            heap_getattr(row, changes->attnums[i], info->columns, &changes->nulls[i]);
}

Changes parse_changes(Relation rel, const TableInfo* info, const Key& key, Jsonb* json,
                      const Bitmapset* managed) {
    refuse_managed_key(info, key, managed);
    if (!JB_ROOT_IS_OBJECT(json))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("changes must be a jsonb object"), errhint("%s", kChangesHint)));
    Members members = read_members(rel, info, key, json, managed);
    Changes changes = {};
    changes.columns = members.columns;
    changes.count = bms_num_members(changes.columns);
    changes.attnums = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (changes.count + 1)));
    changes.values = static_cast<Datum*>(palloc(sizeof(Datum) * (changes.count + 1)));
    changes.nulls = static_cast<bool*>(palloc(sizeof(bool) * (changes.count + 1)));
    int i = 0;
    for (int column = -1; (column = bms_next_member(changes.columns, column)) >= 0; i++)
        changes.attnums[i] = column;
    if (!read_plainly(info, members, &changes))
        read_as_record(info, json, &changes);
    return changes;
}

Jsonb* changes_json(const Arguments& arguments, int n) {
    Jsonb* changes = arguments.jsonb(n, "changes");
    if (!JB_ROOT_IS_OBJECT(changes))
        refuse_argument("changes", "must be a jsonb object", kChangesHint);
    return changes;
}

void raise_no_such_row(Relation rel, const TableInfo* info, const Key& key) {
    const char* shown = key_to_text(info, key);
    ereport(ERROR,
            (errcode(ERRCODE_NO_DATA_FOUND),
             errmsg("table \"%s\" has no such row", RelationGetRelationName(rel)),
             errdetail_internal("%s",
                                json_object({{"table", shown_name(rel)}, {"key", nullptr, shown}})),
             errhint("It was deleted, never existed, or is hidden by row security.%s",
                     is_text_of_object(info, key)
                         ? " A key that is an object needs a cast: '{\"column\": value}'::jsonb."
                         : "")));
}

void raise_suppressed(Relation rel) {
    bool row_security = check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED;
    ereport(
        ERROR,
        (errcode(row_security ? ERRCODE_INSUFFICIENT_PRIVILEGE
                              : ERRCODE_TRIGGERED_ACTION_EXCEPTION),
         errmsg("row of table \"%s\" was not written", RelationGetRelationName(rel)),
         errhint("A row security policy, a trigger or a rule keeps this user from writing it.")));
}

Datum column_names(TupleDesc columns, const Bitmapset* which) {
    int count = 0;
    auto* names = static_cast<Datum*>(palloc(sizeof(Datum) * (bms_num_members(which) + 1)));
    for (int column = -1; (column = bms_next_member(which, column)) >= 0;)
        names[count++] = CStringGetTextDatum(NameStr(TupleDescAttr(columns, column - 1)->attname));
    return PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

Bitmapset* readable_columns(Relation rel) {
    Bitmapset* columns = nullptr;
    Oid relid = RelationGetRelid(rel);
    bool whole_table = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
    for (int i = 0; i < RelationGetDescr(rel)->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), i);
        if (attribute->attisdropped)
            continue;
        if (whole_table ||
            pg_attribute_aclcheck(relid, attribute->attnum, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
            columns = bms_add_member(columns, attribute->attnum);
    }
    return columns;
}

static bool passes_row_security(Relation table, HeapTuple row) {
    Oid relid = RelationGetRelid(table);
    if (check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED)
        return true;
    if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
        return false; // and may not ask
    bool found = false;
    with_spi([&] {
        Oid types[2] = {OIDOID, TIDOID};
        Datum values[2] = {ObjectIdGetDatum(row->t_tableOid), PointerGetDatum(&row->t_self)};
        char* text = psprintf(
            "SELECT FROM %s t WHERE t.tableoid OPERATOR(pg_catalog.=) $1 AND "
            "t.ctid OPERATOR(pg_catalog.=) $2",
            qualified_name(table));
        SPI_execute_with_args(text, 2, types, values, nullptr, false, 1);
        found = SPI_processed > 0;
    });
    return found;
}

// Adds the columns of a row of `rel` that can be read from `table`.
static Bitmapset* add_readable(Bitmapset* columns, Relation table, Relation rel, HeapTuple row) {
    if (!passes_row_security(table, row))
        return columns;
    Bitmapset* readable = readable_columns(table);
    for (int column = -1; (column = bms_next_member(readable, column)) >= 0;) {
        const char* name = NameStr(TupleDescAttr(RelationGetDescr(table), column - 1)->attname);
        columns = bms_add_member(columns, find_attribute(RelationGetDescr(rel), name));
    }
    return columns;
}

Bitmapset* readable_columns(Relation rel, HeapTuple row) {
    Bitmapset* columns = add_readable(nullptr, rel, rel, row);
    if (!rel->rd_rel->relispartition)
        return columns;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(RelationGetRelid(rel))) {
        Relation table = table_open(lfirst_oid(cell), AccessShareLock);
        columns = add_readable(columns, table, rel, row);
        table_close(table, NoLock);
    }
    return columns;
}

const char* readable_key(const TableInfo* info, const Bitmapset* readable, HeapTuple row) {
    return bms_is_subset(info->key.attnums, readable) ? key_to_text(info, key_of_tuple(info, row))
                                                      : nullptr;
}

} // namespace interlock::inline table
