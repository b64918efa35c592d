#include "escrow/counted_columns.h"

#include "escrow/escrow.h"
#include "table/dependency.h"

namespace interlock::escrow {

static bool read_number(const char** text, AttrNumber* number) {
    char* end;
    long value = strtol(*text, &end, 10);
    bool is_number = end != *text && value > 0 && value <= MaxHeapAttributeNumber;
    *number = static_cast<AttrNumber>(value);
    *text = end;
    return is_number;
}

bool read_counted_columns(Oid rel, const Trigger* trigger, int first, CountedColumns* columns) {
    columns->key_count = argument_count(trigger) - first - 1;
    if (columns->key_count <= 0 || columns->key_count > INDEX_MAX_KEYS)
        return false;
    const char* text = trigger->tgargs[first];
    if (!read_number(&text, &columns->column))
        return false;
    Bitmapset* numbers = bms_make_singleton(columns->column);
    for (int i = 0; i < columns->key_count; i++) {
        if (!read_number(&text, &columns->key[i]))
            return false;
        numbers = bms_add_member(numbers, columns->key[i]);
    }
    if (*text != '\0' || bms_num_members(numbers) != columns->key_count + 1)
        return false;
    each_needed_relation(TriggerRelationId, trigger->tgoid, [&](Oid needed, AttrNumber column) {
        if (needed == rel && column > 0)
            numbers = bms_del_member(numbers, column);
    });
    return bms_is_empty(numbers);
}

const char* counted_columns_argument(const CountedColumns& columns) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "%d", columns.column);
    for (int i = 0; i < columns.key_count; i++)
        appendStringInfo(&text, " %d", columns.key[i]);
    return text.data;
}

bool name_counted_column(Oid rel, const Trigger* trigger, NameData* name) {
    CountedColumns columns;
    if (!read_counted_columns(rel, trigger, kColumnNumbers, &columns)) {
        name_argument(trigger, kColumn, name);
        return get_attnum(rel, NameStr(*name)) != InvalidAttrNumber;
    }
    char* found = get_attname(rel, columns.column, true);
    if (found == nullptr)
        return false;
    namestrcpy(name, found);
    return true;
}

} // namespace interlock::escrow
