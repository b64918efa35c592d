// Reads triggers from the catalog, for callers that have not opened the tables. It waits for no
// lock and runs no code of other roles.
#pragma once

#include "table/own_table.h"

namespace interlock::inline table {

// No function of the extension creates a trigger with longer arguments.
constexpr Size kMostArgumentBytes = 4 * 1024 * 1024;

// A scan of triggers. `table` and `trigger` are the current one. The trigger has tgoid, tgname,
// tgfoid, tgtype, tgenabled, tgisclone, tgconstrrelid and tgnargs.
class CatalogTriggers {
public:
    // The triggers of one table, or of all tables for InvalidOid. Sees everything that is committed
    // by now and the changes of this transaction, whatever the transaction's snapshot is.
    explicit CatalogTriggers(Oid relid);

    // Moves to the next trigger in the order of table and name. At the end it closes the catalog
    // and returns false.
    bool next();

    // Adds tgargs and tgqual. Returns false if the arguments are longer than those that any
    // function of the extension writes.
    bool read_arguments();

    Oid table;
    Trigger trigger;

private:
    Relation catalog_;
    Relation index_;
    SysScanDesc scan_;
    HeapTuple row_;
};

// Calls visit(table, trigger) for each trigger that calls interlock_internal.<function>, with its
// arguments. The triggers are those of one table, or of all tables for InvalidOid.
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
