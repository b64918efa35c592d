// Reads triggers from the catalog, for callers that have not opened the tables. It waits for no
// lock and runs no code of other roles.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// No function of the extension creates a trigger with longer arguments.
constexpr Size kMostArgumentBytes = 4 * 1024 * 1024;

struct CatalogTriggers {
    Relation catalog;
    Relation index;
    SysScanDesc scan;
};

// The triggers of one table, or of all tables for InvalidOid. Sees everything that is committed by
// now and the changes of this transaction, whatever the transaction's snapshot is.
CatalogTriggers begin_triggers(Oid relid);

// The next trigger in the order of table and name. Returns false at the end. The trigger has tgoid,
// tgname, tgfoid, tgtype, tgenabled, tgisclone, tgconstrrelid and tgnargs. read_arguments() adds
// tgargs and tgqual.
bool next_trigger(CatalogTriggers* triggers, HeapTuple* row, Oid* relid, Trigger* trigger);
void end_triggers(CatalogTriggers* triggers);

// Calls visit(triggers, row, table, trigger) for each trigger.
template <typename Visit>
void each_trigger(Oid relid, Visit&& visit) {
    CatalogTriggers triggers = begin_triggers(relid);
    HeapTuple row;
    Oid table;
    Trigger trigger;
    while (next_trigger(&triggers, &row, &table, &trigger)) {
        CHECK_FOR_INTERRUPTS();
        visit(triggers, row, table, &trigger);
    }
    end_triggers(&triggers);
}

// Returns false if the arguments are longer than those that any function of the extension creates.
bool read_arguments(const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger);

// The arguments from tgargs: `count` texts, each of which ends with a zero byte.
char** arguments_in(const bytea* stored, int count);

} // namespace interlock::inline table
