#include "idempotency/access.h"

#include "execution/column_default.h"
#include "execution/eligible.h"

namespace interlock::idempotency {

// Foreign keys look, and write nothing unless a key changes.
static bool has_triggers(const TriggerDesc* triggers) {
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger& trigger = triggers->triggers[i];
        if (!trigger.tgisinternal &&
            (trigger.tgtype & (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE)) != 0)
            return true;
    }
    return false;
}

static bool has_more_columns(TupleDesc columns) {
    for (int i = kIdempotencyKeys.count; i < columns->natts; i++)
        if (!TupleDescAttr(columns, i)->attisdropped)
            return true;
    return false;
}

static bool has_only_ours(Relation rel, const TableInfo* info) {
    return table_is_eligible(rel, info) && info->only_row_checks && !has_triggers(rel->trigdesc) &&
           is_unmodified(kIdempotencyKeys, info) && !has_more_columns(info->columns) &&
           has_plain_defaults(rel, info, nullptr);
}

bool runs_only_ours(Relation rel, const TableInfo* info) {
    auto* answer = facet_of<bool>(info, access_facet);
    if (answer == nullptr) {
        answer = static_cast<bool*>(MemoryContextAlloc(info->memory, sizeof(bool)));
        *answer = has_only_ours(rel, info);
        info->facets[access_facet] = answer;
    }
    return *answer;
}

Relation open_keys(LOCKMODE mode) {
    Relation rel = try_open(kIdempotencyKeys, mode);
    if (rel == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("relation \"interlock.%s\" does not exist", kIdempotencyKeys.name)));
    return rel;
}

} // namespace interlock::idempotency
