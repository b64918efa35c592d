// The last word: the row that our BEFORE triggers have checked is the row that is stored.
//
// BEFORE triggers fire in the order of their names, so one that sorts after ours could change the
// row that ours has checked. Such a trigger is refused when the concept is enabled, and by each
// write, as it may have been created or renamed since. WHEN and UPDATE OF do not exempt it.
//
// A BEFORE DELETE trigger that sorts after ours could keep a row whose end ours has noted.
//
// A row that moves to another partition is checked in the one that it leaves. The triggers of its
// INSERT into the other one, of whatever name, fire after that: a move to a partition that has any
// is refused (execution/partition_move.h).
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// A BEFORE ROW trigger of others that fires after the first one of ours.
struct LaterTrigger {
    const char* name;
    Oid root; // the table it was created for: this one, or one that this is a partition of
    char enabled;
    int16 events; // TRIGGER_TYPE_INSERT, TRIGGER_TYPE_UPDATE, TRIGGER_TYPE_DELETE
};

// Fills in TableInfo::later and first_check. The triggers are a copy of the relation's.
void load_later_triggers(TableInfo* info, const TriggerDesc* triggers);

// Raises 55000 when one of them fires in this session for these events.
void refuse_later_triggers(Relation rel, const TableInfo* info, int16 events);
inline void require_last_word(Relation rel, const TableInfo* info, int16 events) {
    if (info->later_count > 0)
        refuse_later_triggers(rel, info, events);
}

// The same for a trigger of ours with that name, which is about to be created.
void require_last_word_of(Relation rel, const char* name, int16 events);

// Whether it is a BEFORE INSERT trigger of others that fires in this session.
bool changes_new_rows(const Trigger* trigger);

} // namespace interlock::inline table
