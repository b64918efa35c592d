#include "version/blind.h"

#include "ownership/ownership.h"
#include "ownership/write_log.h"
#include "statement/running.h"
#include "version/asserted.h"
#include "version/blind_count.h"
#include "version/errors.h"
#include "version/housekeeping.h"
#include "version/unseen.h"
#include "version/version.h"

namespace interlock::version {

namespace {

enum Exemption : int { kAsTheTableSays, kAllowed };

} // namespace

static int exemption = kAsTheTableSays;

constexpr config_enum_entry kExemptions[] = {
    {"table", kAsTheTableSays, false}, {"allow", kAllowed, false}, {nullptr, 0, false}};

// --- Whether it is blind -------------------------------------------------------------------------

// No other transaction can have written a newer version of these rows since this one has seen them.
static bool is_held(Relation rel, HeapTuple row, const Versioning* versioning) {
    if (is_asserted(RelationGetRelid(rel), row->t_self))
        return true;
    return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row->t_data)) &&
           !is_unseen(versioning->root, row);
}

// A change that a subscription applies was judged where it was made.
static bool is_known(Comparison comparison) {
    if (comparison == Comparison::kNoStatement)
        return knows_all_statements() || SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
    return comparison != Comparison::kNotPlanned || knows_all_statements();
}

// What no module has described to us, such as a plan of another planner, is taken for blind.
static bool is_blind(Comparison comparison) {
    return comparison == Comparison::kNone || comparison == Comparison::kNotPlanned;
}

static bool is_excused(const TriggerData* trigger, const Versioning* versioning,
                       const RowChange* change) {
    if (is_held(trigger->tg_relation, trigger->tg_trigtuple, versioning))
        return true;
    if (change == nullptr)
        return is_foreign_key_action();
    if (!is_foreign_key_action() && !is_housekeeping(*change, versioning, false))
        return false;
    note_unseen(versioning->root, running_command());
    return true;
}

// --- What becomes of it --------------------------------------------------------------------------

namespace {

// The strictest mode that holds for the row, and the shared column that it is for; null where it is
// for all columns.
struct Mode {
    BlindUpdates mode;
    const char* column;
};

} // namespace

static Mode mode_of(const TableInfo* info, const RowChange* change) {
    Mode strictest = {versioning_of(info)->blind_updates, nullptr};
    const ownership::Ownership* ownership = ownership::ownership_of(info);
    for (int i = 0; change != nullptr && ownership != nullptr && i < ownership->rules.count; i++) {
        const ownership::ColumnRule& rule = ownership->rules.rules[i];
        if (rule.blind_updates > strictest.mode && rule.column != InvalidAttrNumber &&
            !same_value(info->columns, change->old_row, change->new_row, rule.column))
            strictest = {rule.blind_updates, rule.name};
    }
    return strictest;
}

static bool is_allowed_here(const Versioning* versioning) {
    return exemption == kAllowed && session_owns(versioning->root);
}

static void log_allowed(const TriggerData* trigger, const TableInfo* info,
                        const Versioning* versioning) {
    const char* operation = TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? "delete" : "update";
    ownership::WriteGroup group = {ownership::WriteDecision::kBlind, operation, versioning->root,
                                   GetCurrentCommandId(false), nullptr};
    ownership::count_writes(group, 1, [&] {
        ownership::WriteSample sample = {};
        if (info->key.count > 0)
            sample.key = key_to_jsonb(info, key_of_tuple(info, trigger->tg_trigtuple));
        sample.reason = "interlock.blind_updates = allow";
        return sample;
    });
}

static void report(const TriggerData* trigger, const TableInfo* info, Mode mode) {
    BlindWrite write = {trigger->tg_relation, info, trigger->tg_trigtuple,
                        TRIGGER_FIRED_BY_DELETE(trigger->tg_event), mode.column};
    if (mode.mode == BlindUpdates::kReject)
        count(info, CountedKind::kVersioning, Counter::kRefusals);
    report_blind_write(write, mode.mode == BlindUpdates::kReject ? ERROR : WARNING);
}

void note_own_write(Relation rel, HeapTuple row, const Versioning* versioning) {
    if (unseen_write != nullptr && *unseen_write == versioning->root &&
        !is_held(rel, row, versioning))
        note_unseen(versioning->root, running_command());
}

void judge_blindness(const TriggerData* trigger, const TableInfo* info, const RowChange* change) {
    if (change == nullptr && is_moved(trigger)) // judged as an update
        return;
    const Versioning* versioning = versioning_of(info);
    Comparison comparison = comparison_of(trigger, versioning->column);
    if (comparison != Comparison::kOwn) // functions count their own calls
        count(info, CountedKind::kVersioning, Counter::kCalls);
    bool known = is_known(comparison);
    if (known && !is_blind(comparison)) {
        note_own_write(trigger->tg_relation, trigger->tg_trigtuple, versioning);
        return;
    }
    if (is_excused(trigger, versioning, change))
        return;
    if (known && !RelationUsesLocalBuffers(trigger->tg_relation)) { // no other session writes those
        count_blind_write(versioning->root, trigger->tg_trigtuple);
        count(info, CountedKind::kVersioning, Counter::kBlindUpdates);
    }
    Mode mode = mode_of(info, change);
    if (mode.mode == BlindUpdates::kAllow)
        return;
    if (is_allowed_here(versioning)) {
        log_allowed(trigger, info, versioning);
        return;
    }
    if (known && (mode.mode == BlindUpdates::kReject || is_first_of_statement(versioning->root)))
        report(trigger, info, mode);
    else if (!known && mode.mode == BlindUpdates::kReject)
        require_all_statements(psprintf("writes of table \"%s\" cannot be checked",
                                        RelationGetRelationName(trigger->tg_relation)));
}

void define_blind_settings() {
    DefineCustomEnumVariable(
        "interlock.blind_updates",
        "What happens when the owner of a versioned table updates it without comparing the "
        "version.",
        "table: what enable_versioning says. allow: it is allowed and logged; for the owner alone.",
        &exemption, kAsTheTableSays, kExemptions, PGC_USERSET, 0, nullptr, nullptr, nullptr);
}

} // namespace interlock::version
