// The last word: the row that the extension's BEFORE triggers have checked is the row that is
// stored.
//
// BEFORE triggers fire in the order of their names. A trigger of others whose name sorts after ours
// could change the checked row. Such a trigger is refused when the concept is enabled. Each write
// refuses it too, because it may have been created or renamed since. WHEN and UPDATE OF do not
// exempt it.
//
// A BEFORE DELETE trigger that sorts after ours could keep a row that our trigger has recorded as
// deleted.
//
// A row that moves to another partition is checked in the partition that it leaves. The BEFORE
// INSERT triggers of the new partition fire after that, whatever their names are. So a move to a
// partition with such a trigger is refused (execution/partition_move.h).
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// A BEFORE ROW trigger of others that fires after our first BEFORE ROW trigger.
struct LaterTrigger {
    const char* name;
    Oid root; // the table it was created for: this one, or one that this is a partition of
    char enabled;
    int16 events; // TRIGGER_TYPE_INSERT, TRIGGER_TYPE_UPDATE, TRIGGER_TYPE_DELETE
};

// Fills in TableInfo::later and first_check. The triggers are a copy of the relation's triggers.
void load_later_triggers(TableInfo* info, const TriggerDesc* triggers);

// Raises 55000 if one of these triggers fires in this session for these events.
void refuse_later_triggers(Relation rel, const TableInfo* info, int16 events);
inline void require_last_word(Relation rel, const TableInfo* info, int16 events) {
    if (info->later_count > 0)
        refuse_later_triggers(rel, info, events);
}

// The same for a trigger of the extension that is about to be created with that name.
void require_last_word_of(Relation rel, const char* name, int16 events);

// Whether it is a BEFORE INSERT trigger of others that fires in this session.
bool changes_new_rows(const Trigger* trigger);

} // namespace interlock::inline table
