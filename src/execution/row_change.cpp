#include "execution/row_change.h"

namespace interlock::inline execution {

bool decide(RowChange* change) {
    const TableInfo* info = change->info;
    for (int i = 0; i < info->row_check_count; i++)
        if (!info->row_checks[i](change))
            return false;
    return true;
}

void put(RowChange* change, AttrNumber attnum, NullableDatum value) {
    RowValues row = values_in(change->new_row);
    row.values[attnum - 1] = value.value;
    row.nulls[attnum - 1] = value.isnull;
    change->changed = true;
}

RowChange change_of(const TriggerData* trigger, const TableInfo* info) {
    return {trigger->tg_relation,    info,   trigger->tg_trigslot, trigger->tg_newslot,
            trigger->tg_updatedcols, nullptr};
}

HeapTuple tuple_to_write(const RowChange& change, HeapTuple given) {
    if (!change.changed)
        return given;
    RowValues row = values_in(change.new_row);
    HeapTuple tuple = heap_form_tuple(RelationGetDescr(change.rel), row.values, row.nulls);
    tuple->t_data->t_ctid = given->t_data->t_ctid;
    tuple->t_self = given->t_self;
    tuple->t_tableOid = given->t_tableOid;
    return tuple;
}

} // namespace interlock::inline execution
