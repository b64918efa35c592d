// The configuration of a table's history, loaded with the table's metadata.

#include "history/history.h"

#include "marker/marker.h"
#include "server/scope.h"
#include "table/facet.h"
#include "table/plan.h"

namespace interlock::history {

static bool is_plain(Oid type) {
    type = getBaseType(type);
    switch (type) {
    case TIMESTAMPTZOID:
        return false;
    default:
        return prints_alike(type);
    }
}

// The table was a partition, too.
static bool is_clone(Oid root, const char* name) {
    Relation rel = table_open(root, AccessShareLock);
    const TriggerDesc* triggers = rel->trigdesc;
    bool clone = false;
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++)
        if (strcmp(triggers->triggers[i].tgname, name) == 0)
            clone = triggers->triggers[i].tgisclone;
    table_close(rel, AccessShareLock);
    return clone;
}

static void load_history_key(History* history, TupleDesc columns) {
    List* names = key_column_names(history->root);
    history->same_key = names != NIL && 2 * list_length(names) == history->key.count;
    history->plain_key = true;
    for (int i = 0; i < list_length(names); i++) {
        const char* name = static_cast<char*>(list_nth(names, i));
        AttrNumber column = find_attribute(columns, name);
        if (column == InvalidAttrNumber) // renamed meanwhile: the relation is loaded again
            continue;
        history->key_columns = bms_add_member(history->key_columns, column);
        history->plain_key =
            history->plain_key && is_plain(TupleDescAttr(columns, column - 1)->atttypid);
        history->same_key =
            history->same_key && strcmp(name, history->key[2 * i]) == 0 &&
            strcmp(history_type_name(history->root, name), history->key[2 * i + 1]) == 0;
    }
}

void load_history(TableInfo* info, const Trigger* trigger) {
    TupleDesc columns = info->columns;
    auto* history = add_facet<History>(info, history_facet, trigger);
    if (history->is_clone && is_clone(history->root, trigger->tgname)) {
        info->facets[history_facet] = nullptr;
        return;
    }
    history->well_formed = read_settings(trigger, history);
    char kind = get_rel_relkind(trigger->tgconstrrelid);
    if (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE)
        history->table = trigger->tgconstrrelid;
    history->same_owner = owner_of_table(history->table) == owner_of_table(history->root);
    load_history_key(history, columns);
    Bitmapset* stored = nullptr;
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (attribute->attisdropped)
            continue;
        if (is_stored(attribute))
            stored = bms_add_member(stored, i + 1);
        else
            history->left_out = bms_add_member(history->left_out, i + 1);
    }
    history->row_members = json_members(columns, stored);
    history->key_members = json_members(columns, history->key_columns);
}

void load_ignored_columns(TableInfo* info) {
    auto* history = facet_of<History>(info, history_facet);
    if (history == nullptr)
        return;
    for (const char* name : history->ignored_columns) {
        AttrNumber column = find_attribute(info->columns, name);
        if (column != InvalidAttrNumber)
            history->ignored = bms_add_member(history->ignored, column);
    }
    Bitmapset* maintained = bms_difference(info->maintained, info->counted);
    const marker::Marker* marker = marker::marker_of(info);
    if (marker != nullptr && history->record_markers)
        maintained = bms_del_members(maintained, marker->attnums);
    history->unmoved = bms_union(history->ignored, maintained);
}

char* history_type_name(Oid relid, const char* column) {
    Oid type = get_atttype(relid, get_attnum(relid, column));
    char* name = nullptr;
    with_settings([&] {
        if (quote_all_identifiers)
            (void)set_config_option("quote_all_identifiers", "off", PGC_USERSET, PGC_S_SESSION,
                                    GUC_ACTION_SAVE, true, 0, false);
        name =
            format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY | FORMAT_TYPE_ALLOW_INVALID);
    });
    return name;
}

} // namespace interlock::history
