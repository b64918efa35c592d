// Triggers as the catalog has them, for callers that have not opened their tables: it waits for no
// lock, and runs no code of others.
#pragma once

#include "table/own_table.h"

namespace interlock::inline table {

// The functions of the extension make no longer ones.
constexpr Size kMostArgumentBytes = 4 * 1024 * 1024;

// A scan of them. The one that it has come to is in `table` and `trigger`, which has tgoid, tgname,
// tgfoid, tgtype, tgenabled, tgisclone, tgconstrrelid and tgnargs.
class CatalogTriggers {
public:
    // Those of one table; of all with InvalidOid. Sees what is committed by now, and what the
    // transaction has done itself, whatever its snapshot is.
    explicit CatalogTriggers(Oid relid);

    // The next one in the order of table and name; false at the end, where it closes the catalog.
    bool next();

    // Adds tgargs and tgqual. False when they are longer than those that any function of ours
    // makes.
    bool read_arguments();

    Oid table;
    Trigger trigger;

private:
    Relation catalog_;
    Relation index_;
    SysScanDesc scan_;
    HeapTuple row_;
};

// Calls visit(table, trigger) for each that calls interlock_internal.<function>, with its
// arguments: of one table, or of all.
template <typename Visit>
void each_trigger_of(const char* function, Oid relid, Visit&& visit) {
    Oid wanted = own_trigger_function(function);
    CatalogTriggers triggers(relid);
    while (triggers.next())
        if (triggers.trigger.tgfoid == wanted)
            in_scratch([&] {
                if (triggers.read_arguments())
                    visit(triggers.table, const_cast<const Trigger*>(&triggers.trigger));
            });
}

} // namespace interlock::inline table
