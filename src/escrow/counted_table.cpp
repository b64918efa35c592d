// The type of the column that names the table of a counter. It is stored as an OID and printed as a
// name, as regclass is. But a name that no table has is none, and no error: any role can have
// counters on a table that a restore does not make, or that is left out of a dump. One such line
// would stop COPY, and with it the counters of all.

#include "escrow/journal.h"
#include "table/name.h"
#include "table/trigger.h"

namespace interlock::escrow {

constexpr const char* kNone = "-";

static Oid find_table(const char* name) {
    if (strcmp(name, kNone) == 0)
        return InvalidOid;
    List* parts = textToQualifiedNameList(cstring_to_text(name));
    return RangeVarGetRelid(makeRangeVarFromNameList(parts), NoLock, true);
}

static char* name_of(Oid table) {
    bool is_there = SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table));
    return is_there ? qualified_name(table) : pstrdup(kNone);
}

// A null is left to the constraint.
static bool takes_counter(const TriggerData* trigger) {
    CounterName name;
    return !read_name(trigger->tg_relation, trigger->tg_trigtuple, &name) ||
           (OidIsValid(name.rel) && find_counter(name) == 0);
}

extern "C" {
PG_FUNCTION_INFO_V1(counted_table_in);
PG_FUNCTION_INFO_V1(counted_table_out);
PG_FUNCTION_INFO_V1(counted_table_recv);
PG_FUNCTION_INFO_V1(counted_table_send);
PG_FUNCTION_INFO_V1(counted_table_trigger);

Datum counted_table_in(PG_FUNCTION_ARGS) { PG_RETURN_OID(find_table(PG_GETARG_CSTRING(0))); }

Datum counted_table_out(PG_FUNCTION_ARGS) { PG_RETURN_CSTRING(name_of(PG_GETARG_OID(0))); }

// In binary form a name, too: an OID means nothing to another server.
Datum counted_table_recv(PG_FUNCTION_ARGS) {
    auto* message = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    int length;
    PG_RETURN_OID(find_table(pq_getmsgtext(message, message->len - message->cursor, &length)));
}

Datum counted_table_send(PG_FUNCTION_ARGS) {
    const char* name = name_of(PG_GETARG_OID(0));
    StringInfoData message;
    pq_begintypsend(&message);
    pq_sendtext(&message, name, static_cast<int>(strlen(name)));
    PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

// BEFORE INSERT: leaves out a counter without a table, and one whose table and key have a counter
// already: where the publisher has renamed or dropped a table and made another of its name, and
// this server has not. Parts and reservations without a counter are deleted by the sweeper.
Datum counted_table_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "counted_table_trigger");
    if (RelationGetRelid(trigger->tg_relation) != counter_table())
        raise_forged(trigger->tg_relation, trigger->tg_trigger->tgname, "enable_escrow");
    return PointerGetDatum(takes_counter(trigger) ? trigger->tg_trigtuple : nullptr);
}
}

} // namespace interlock::escrow
