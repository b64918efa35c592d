#include "execution/last_word.h"

#include "execution/partition_move.h"
#include "table/relation_code.h"

namespace interlock {

namespace {

bool is_ours(const Trigger* trigger) {
    return place_of_check(trigger) >= 0 || trigger_calls(trigger, "ownership_trigger");
}

// The events, of those that matter here, before which the trigger can change a row.
int16 events_of(const Trigger* trigger) {
    if (!TRIGGER_FOR_ROW(trigger->tgtype) || !TRIGGER_FOR_BEFORE(trigger->tgtype))
        return 0;
    return trigger->tgtype & (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE);
}

LaterTrigger later_trigger(Oid relid, const Trigger* trigger) {
    return {pstrdup(trigger->tgname), root_of_trigger(relid, trigger), trigger->tgenabled,
            events_of(trigger)};
}

bool fires_for(const LaterTrigger& trigger, int16 events) {
    return (trigger.events & events) != 0 && trigger_fires(trigger.enabled);
}

char* earlier_name(const char* name, const char* ours) {
    return psprintf("%s_%s", strcmp("a_", ours) < 0 ? "a" : "0", name);
}

[[noreturn]] void raise_not_last(Relation rel, const LaterTrigger& trigger, const char* ours) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("trigger \"%s\" of table \"%s\" could change the row after it was checked",
                    trigger.name, RelationGetRelationName(rel)),
             errdetail("It fires after trigger \"%s\".", ours),
             errhint("Rename it so that it sorts before: ALTER TRIGGER %s ON %s RENAME TO %s;",
                     quote_identifier(trigger.name), qualified_name(trigger.root),
                     quote_identifier(earlier_name(trigger.name, ours)))));
}

} // namespace

void load_later_triggers(RelationFacts* facts, const TriggerDesc* triggers) {
    int count = triggers != nullptr ? triggers->numtriggers : 0;
    for (int i = 0; i < count; i++) { // sorted by name
        const Trigger* trigger = &triggers->triggers[i];
        if (events_of(trigger) == 0)
            continue;
        if (is_ours(trigger)) {
            if (facts->first_check == nullptr)
                facts->first_check = pstrdup(trigger->tgname);
            continue;
        }
        if (facts->first_check == nullptr)
            continue;
        if (facts->later == nullptr)
            facts->later = static_cast<LaterTrigger*>(palloc0(sizeof(LaterTrigger) * count));
        facts->later[facts->later_count++] = later_trigger(facts->relid, trigger);
    }
}

void refuse_later_triggers(Relation rel, const RelationFacts* facts, int16 events) {
    for (int i = 0; i < facts->later_count; i++)
        if (fires_for(facts->later[i], events))
            raise_not_last(rel, facts->later[i], facts->first_check);
}

void require_last_word_of(Relation rel, const char* name, int16 events) {
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (strcmp(trigger->tgname, name) <= 0 || is_ours(trigger))
            continue;
        LaterTrigger later = later_trigger(RelationGetRelid(rel), trigger);
        if (fires_for(later, events))
            raise_not_last(rel, later, name);
    }
}

namespace {

[[noreturn]] void raise_unchecked_move(Relation rel, Relation partition, const char* trigger) {
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("trigger \"%s\" of table \"%s\" could change the row after it was checked", trigger,
                RelationGetRelationName(partition)),
         errdetail("The row moves there from partition \"%s\", and is not checked again.",
                   RelationGetRelationName(rel)),
         errhint("Let the trigger fire AFTER INSERT, replace it by a column default, or move the "
                 "row by a DELETE and an INSERT.")));
}

void refuse_insert_triggers(Relation rel, Relation partition) {
    const TriggerDesc* triggers = CopyTriggerDesc(partition->trigdesc);
    for (int i = 0; i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if ((events_of(trigger) & TRIGGER_TYPE_INSERT) != 0 && trigger_fires(trigger->tgenabled) &&
            !is_ours(trigger))
            raise_unchecked_move(rel, partition, trigger->tgname);
    }
}

} // namespace

void refuse_unchecked_move(const RowChange& change) {
    Oid relid = new_partition(change);
    if (!OidIsValid(relid))
        return;
    // The lock that the server's INSERT takes: no trigger can be created until then.
    Relation partition = table_open(relid, RowExclusiveLock);
    if (partition->trigdesc != nullptr && partition->trigdesc->trig_insert_before_row)
        refuse_insert_triggers(change.rel, partition);
    table_close(partition, NoLock);
}

} // namespace interlock
