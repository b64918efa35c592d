// Triggers as the catalog has them, for callers that have not opened their tables: it waits for no
// lock, and runs no code of others.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// The functions of the extension make no longer ones.
constexpr Size kMostArgumentBytes = 4 * 1024 * 1024;

struct CatalogTriggers {
    Relation catalog;
    Relation index;
    SysScanDesc scan;
};

// Those of one table; of all with InvalidOid. Sees what is committed by now, and what the
// transaction has done itself, whatever its snapshot is.
CatalogTriggers begin_triggers(Oid relid);

// The next one in the order of table and name; false at the end. The trigger has tgoid, tgname,
// tgfoid, tgtype, tgenabled, tgisclone, tgconstrrelid and tgnargs; read_arguments() adds tgargs and
// tgqual.
bool next_trigger(CatalogTriggers* triggers, HeapTuple* row, Oid* relid, Trigger* trigger);
void end_triggers(CatalogTriggers* triggers);

// Calls visit(triggers, row, table, trigger) for each.
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

// False when they are longer than those that any function of ours makes.
bool read_arguments(const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger);

// tgargs as the catalog has them: that many texts, each ends with a zero byte.
char** arguments_in(const bytea* stored, int count);

} // namespace interlock::inline table
