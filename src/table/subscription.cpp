#include "table/subscription.h"

#include "table/name.h"

namespace interlock::inline table {

// False for a table that has been dropped meanwhile.
static bool has_all_rights(Oid relid, Oid role) {
    for (AclMode right : {ACL_INSERT, ACL_UPDATE, ACL_DELETE}) {
        bool is_missing = false;
        if (pg_class_aclcheck_ext(relid, role, right, &is_missing) != ACLCHECK_OK)
            return false;
    }
    return true;
}

// The owner of a subscription lists any tables there. It writes those alone on which it has rights.
static bool may_write(Oid subscription, Oid relid) {
    HeapTuple tuple = SearchSysCache1(SUBSCRIPTIONOID, ObjectIdGetDatum(subscription));
    if (!HeapTupleIsValid(tuple))
        return false;
    auto* row = reinterpret_cast<Form_pg_subscription>(GETSTRUCT(tuple));
    Oid owner = row->subowner;
    bool as_owner = writes_as_its_owner(row);
    ReleaseSysCache(tuple);
    return as_owner ? has_all_rights(relid, owner) : may_become(owner, owner_of_table(relid));
}

static bool has_subscription(Oid relid) {
    CatCList* found = SearchSysCacheList1(SUBSCRIPTIONRELMAP, ObjectIdGetDatum(relid));
    bool has_any = false;
    for (int i = 0; i < found->n_members && !has_any; i++) {
        HeapTuple tuple = &found->members[i]->tuple;
        has_any =
            may_write(reinterpret_cast<Form_pg_subscription_rel>(GETSTRUCT(tuple))->srsubid, relid);
    }
    ReleaseSysCacheList(found);
    return has_any;
}

static uint64 changes = 1; // of pg_subscription_rel

static void note_change(Datum, CatalogCache, uint32) { changes++; }

static bool has_lines() {
    Relation catalog = table_open(SubscriptionRelRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
    bool found = HeapTupleIsValid(systable_getnext(scan));
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return found;
}

// Whether the database subscribes to any table. It is asked for each part of an escrow counter.
static bool has_subscriptions() {
    static bool watches = false;
    static uint64 known = 0; // the changes when it was looked for; 0: never
    static bool found = false;
    if (!watches)
        CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, note_change, 0);
    watches = true;
    if (known != changes) {
        uint64 before = changes;
        found = has_lines();
        known = before;
    }
    return found;
}

bool is_subscribed(Oid relid) {
    if (!has_subscriptions())
        return false;
    if (has_subscription(relid))
        return true;
    if (!get_rel_relispartition(relid))
        return false;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(relid))
        if (has_subscription(lfirst_oid(cell)))
            return true;
    return false;
}

int64 number_apart() {
    uint64 random = pg_prng_uint64(&pg_global_prng_state);
    return kFirstNumberApart + static_cast<int64>(random % kFirstNumberApart);
}

char* insert_of_line(Oid table, const char* columns, int count, const char* number) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "INSERT INTO %s (%s%s)%s VALUES (", qualified_name(table),
                     number != nullptr ? "id, " : "", columns,
                     number != nullptr ? " OVERRIDING SYSTEM VALUE" : "");
    if (number != nullptr)
        appendStringInfo(&text, "%s, ", number);
    for (int i = 1; i <= count; i++)
        appendStringInfo(&text, "%s$%d", i > 1 ? ", " : "", i);
    appendStringInfoChar(&text, ')');
    return text.data;
}

char* insert_of_line(Oid table, const char* columns, int count) {
    const char* number = is_subscribed(table) ? psprintf(INT64_FORMAT, number_apart()) : nullptr;
    return insert_of_line(table, columns, count, number);
}

} // namespace interlock::inline table
