#include "table/last_word.h"

#include "table/facet.h"
#include "table/name.h"
#include "table/trigger.h"

namespace interlock::inline table {

constexpr int16 kChanges = TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE;

// Those events before which the trigger can change a row, or keep it.
static int16 events_of(const Trigger* trigger) {
    if (!TRIGGER_FOR_ROW(trigger->tgtype) || !TRIGGER_FOR_BEFORE(trigger->tgtype))
        return 0;
    return trigger->tgtype & (kChanges | TRIGGER_TYPE_DELETE);
}

static LaterTrigger later_trigger(Oid relid, const Trigger* trigger) {
    return {pstrdup(trigger->tgname), root_of_trigger(relid, trigger), trigger->tgenabled,
            events_of(trigger)};
}

static bool fires_for(const LaterTrigger& trigger, int16 events) {
    return (trigger.events & events) != 0 && trigger_fires(trigger.enabled);
}

static char* earlier_name(const char* name, const char* ours) {
    return psprintf("%s_%s", strcmp("a_", ours) < 0 ? "a" : "0", name);
}

[[noreturn]] static void raise_not_last(Relation rel, const LaterTrigger& trigger,
                                        const char* ours) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("trigger \"%s\" of table \"%s\" could change the row after it was checked",
                    trigger.name, RelationGetRelationName(rel)),
             errdetail("It fires after trigger \"%s\".", ours),
             errhint("Rename it so that it sorts before: ALTER TRIGGER %s ON %s RENAME TO %s;",
                     quote_identifier(trigger.name), qualified_name(trigger.root),
                     quote_identifier(earlier_name(trigger.name, ours)))));
}

bool changes_new_rows(const Trigger* trigger) {
    return (events_of(trigger) & TRIGGER_TYPE_INSERT) != 0 && trigger_fires(trigger->tgenabled) &&
           facet_of_trigger(trigger) == nullptr;
}

void load_later_triggers(TableInfo* info, const TriggerDesc* triggers) {
    int count = triggers != nullptr ? triggers->numtriggers : 0;
    for (int i = 0; i < count; i++) { // sorted by name
        const Trigger* trigger = &triggers->triggers[i];
        if (events_of(trigger) == 0)
            continue;
        if (facet_of_trigger(trigger) != nullptr) {
            if (info->first_check == nullptr && (events_of(trigger) & kChanges) != 0)
                info->first_check = pstrdup(trigger->tgname);
            continue;
        }
        if (info->first_check == nullptr)
            continue;
        if (info->later == nullptr)
            info->later = static_cast<LaterTrigger*>(palloc0(sizeof(LaterTrigger) * count));
        info->later[info->later_count++] = later_trigger(info->relid, trigger);
    }
}

void refuse_later_triggers(Relation rel, const TableInfo* info, int16 events) {
    for (int i = 0; i < info->later_count; i++)
        if (fires_for(info->later[i], events))
            raise_not_last(rel, info->later[i], info->first_check);
}

void require_last_word_of(Relation rel, const char* name, int16 events) {
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (strcmp(trigger->tgname, name) <= 0 || facet_of_trigger(trigger) != nullptr)
            continue;
        LaterTrigger later = later_trigger(RelationGetRelid(rel), trigger);
        if (fires_for(later, events))
            raise_not_last(rel, later, name);
    }
}

} // namespace interlock::inline table
