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

static bool has_more_columns(const OwnTable& table, TupleDesc columns) {
    for (int i = table.count; i < columns->natts; i++)
        if (!TupleDescAttr(columns, i)->attisdropped)
            return true;
    return false;
}

static bool has_only_ours(Relation rel, const TableInfo* info) {
    const OwnTable& table = definition_of_keys(info);
    return table_is_eligible(rel, info) && info->only_row_checks && !has_triggers(rel->trigdesc) &&
           is_unmodified(table, info) && !has_more_columns(table, info->columns) &&
           has_plain_defaults(rel, info, nullptr);
}

// They follow the columns that an owner had added before the upgrade.
const OwnTable& definition_of_keys(const TableInfo* info) {
    const char* name = kIdempotencyKeys.columns[kFirstIdempotencyKeys.count].name;
    for (int i = kFirstIdempotencyKeys.count; i < info->columns->natts; i++)
        if (strcmp(NameStr(TupleDescAttr(info->columns, i)->attname), name) == 0)
            return kIdempotencyKeys;
    return kFirstIdempotencyKeys;
}

bool has_all_columns(const TableInfo* info) {
    return &definition_of_keys(info) == &kIdempotencyKeys;
}

void require_all_columns(const TableInfo* info) {
    if (!has_all_columns(info))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of relation \"interlock.%s\" does not exist",
                               kIdempotencyKeys.columns[kFirstIdempotencyKeys.count].name,
                               kIdempotencyKeys.name)));
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
