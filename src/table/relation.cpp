#include "table/relation.h"

#include "server/lru.h"
#include "table/facet.h"
#include "table/load.h"

namespace interlock::inline table {

namespace {

struct CacheEntry {
    Oid relid; // hash key
    TableInfo* info;
    uint64 changes; // invalidations seen; one that arrives while the info load makes them stale at
                    // once
    LastUse use;
};

} // namespace

// Exceeded only while one transaction uses more tables: it has a lock on each.
constexpr int kMaxCachedTables = 8192; // about 8 kB each

static HTAB* cache = nullptr;
static dlist_head entries_by_use = DLIST_STATIC_INIT(entries_by_use);
static bool has_stale = false; // since the last transaction ended

static void retire(TableInfo* info) {
    // A function further up the stack may still read this metadata, so it lives on until the
    // transaction ends.
    MemoryContextSetParent(info->memory, TopTransactionContext);
}

static void mark_stale(CacheEntry* entry) {
    entry->changes++;
    if (entry->info != nullptr)
        entry->info->valid = false;
    has_stale = true;
}

static void invalidate(Datum, Oid relid) {
    if (cache == nullptr)
        return;
    if (OidIsValid(relid)) {
        auto* entry = static_cast<CacheEntry*>(hash_search(cache, &relid, HASH_FIND, nullptr));
        if (entry != nullptr)
            mark_stale(entry);
        return;
    }
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, cache);
    while (auto* entry = static_cast<CacheEntry*>(hash_seq_search(&scan)))
        mark_stale(entry);
}

static void remove_entry(CacheEntry* entry) {
    if (entry->info != nullptr)
        retire(entry->info);
    forget_use(&entry->use);
    hash_search(cache, &entry->relid, HASH_REMOVE, nullptr);
}

static void make_room() {
    while (hash_get_num_entries(cache) >= kMaxCachedTables) {
        auto* entry = longest_unused<CacheEntry>(&entries_by_use);
        if (entry == nullptr)
            return;
        remove_entry(entry);
    }
}

static CacheEntry* find_entry(Oid relid) {
    auto* entry = latest<CacheEntry>(&entries_by_use);
    if (entry == nullptr || entry->relid != relid)
        entry = static_cast<CacheEntry*>(hash_search(cache, &relid, HASH_FIND, nullptr));
    if (entry != nullptr) {
        note_use(&entries_by_use, &entry->use);
        return entry;
    }
    make_room();
    entry = static_cast<CacheEntry*>(hash_search(cache, &relid, HASH_ENTER, nullptr));
    entry->info = nullptr;
    entry->changes = 0;
    note_first_use(&entries_by_use, &entry->use);
    return entry;
}

// As table_open() does: a subtransaction that was rolled back leaves what it had seen.
static void revalidate(Relation rel) {
    if (!rel->rd_isvalid)
        RelationClose(RelationIdGetRelation(RelationGetRelid(rel)));
}

static TableInfo* load(CacheEntry* entry, Relation rel) {
    revalidate(rel);
    uint64 changes = entry->changes;
    TableInfo* info = load_table_info(rel);
    MemoryContextSetParent(info->memory, CacheMemoryContext);
    info->valid = entry->changes == changes;
    entry->info = info;
    return info;
}

static bool is_right(const CacheEntry* entry) {
    return entry->info != nullptr && entry->info->valid;
}

[[noreturn]] static void raise_missing(Oid relid) {
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("table with OID %u does not exist", relid)));
}

[[noreturn]] static void refuse(Oid relid, AclResult why) {
    const char* name = get_rel_name(relid);
    if (name == nullptr) // dropped just now
        raise_missing(relid);
    aclcheck_error(why, OBJECT_TABLE, name);
    pg_unreachable();
}

// As for LOCK TABLE: requires one of the privileges on the table or on any column.
static void require_privilege(Oid relid, AclMode needed) {
    if (has_any_privilege(relid, needed))
        return;
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
        raise_missing(relid);
    refuse(relid, ACLCHECK_NO_PRIV);
}

static void require_ownership(Oid relid) {
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
        raise_missing(relid);
    if (!owns_relation(relid, GetUserId()))
        refuse(relid, ACLCHECK_NOT_OWNER);
}

[[noreturn]] static void refuse_system_table(Oid relid) {
    const char* name = get_rel_name(relid);
    if (name == nullptr)
        raise_missing(relid);
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is a system table", name),
                    errhint("Only user tables can be used with pg_interlock.")));
}

static bool is_table(char kind) {
    return kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE;
}

[[noreturn]] static void refuse_kind(const char* name) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a table", name),
                    errhint("Ordinary and partitioned tables are supported.")));
}

[[noreturn]] static void refuse_other_temp() {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("cannot access temporary tables of other sessions")));
}

static Relation open_of_right_kind(Oid relid, LOCKMODE mode) {
    Relation rel = try_relation_open(relid, mode);
    if (rel == nullptr)
        raise_missing(relid);
    if (!is_table(rel->rd_rel->relkind))
        refuse_kind(RelationGetRelationName(rel));
    if (RELATION_IS_OTHER_TEMP(rel))
        refuse_other_temp();
    return rel;
}

// Checks before the lock is acquired, so that no role locks a table that it may not use or that
// does not exist. Checks again when anything has changed meanwhile, as the wait may have been long.
template <typename Require>
static Relation open_if_allowed(Oid relid, LOCKMODE mode, Require&& require) {
    uint64 changes = SharedInvalidMessageCounter;
    require();
    if (relid < FirstNormalObjectId)
        refuse_system_table(relid);
    Relation rel = open_of_right_kind(relid, mode);
    if (SharedInvalidMessageCounter != changes)
        require();
    return rel;
}

void initialize_relation_cache() {
    number_facets();
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(CacheEntry);
    control.hcxt = TopMemoryContext;
    cache = hash_create("interlock relations", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    CacheRegisterRelcacheCallback(invalidate, 0);
}

const TableInfo* table_info(Relation rel) {
    CacheEntry* entry = find_entry(RelationGetRelid(rel));
    if (is_right(entry))
        return entry->info;
    if (entry->info != nullptr) {
        retire(entry->info);
        entry->info = nullptr;
    }
    return load(entry, rel);
}

const TableInfo* cached_table_info(Oid relid) {
    CacheEntry* entry = find_entry(relid);
    return is_right(entry) ? entry->info : nullptr;
}

bool forget_stale_tables() {
    if (!has_stale)
        return false;
    has_stale = false;
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, cache);
    while (auto* entry = static_cast<CacheEntry*>(hash_seq_search(&scan)))
        if (entry->info == nullptr || !entry->info->valid)
            remove_entry(entry);
    return true;
}

Relation open_table(Oid relid, LOCKMODE mode) {
    return open_table(relid, mode, mode == AccessShareLock ? ACL_SELECT : ACL_UPDATE | ACL_DELETE);
}

bool has_any_privilege(Oid relid, AclMode any_of) {
    bool is_missing = false;
    return pg_class_aclcheck_ext(relid, GetUserId(), any_of, &is_missing) == ACLCHECK_OK ||
           (!is_missing &&
            pg_attribute_aclcheck_all(relid, GetUserId(), any_of, ACLMASK_ANY) == ACLCHECK_OK);
}

bool has_column_privilege(Oid relid, AttrNumber column, AclMode right) {
    return pg_class_aclcheck(relid, GetUserId(), right) == ACLCHECK_OK ||
           pg_attribute_aclcheck(relid, column, GetUserId(), right) == ACLCHECK_OK;
}

bool may_see_table(Oid relid) {
    Oid schema = get_rel_namespace(relid);
    return OidIsValid(schema) && (!isAnyTempNamespace(schema) || isTempNamespace(schema)) &&
           has_any_privilege(relid, kAnyOfTable);
}

bool may_see_counts(Oid relid) {
    return has_any_privilege(relid, ACL_SELECT) ||
           (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) &&
            SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)));
}

Relation open_table(Oid relid, LOCKMODE mode, AclMode any_of) {
    return open_if_allowed(relid, mode, [&] { require_privilege(relid, any_of); });
}

Relation open_own_table(Oid relid, LOCKMODE mode) {
    if (mode > AccessShareLock) // as for ALTER TABLE
        PreventCommandIfParallelMode("a function that configures a table");
    return open_if_allowed(relid, mode, [&] { require_ownership(relid); });
}

void check_table(Oid relid, AclMode any_of) {
    require_privilege(relid, any_of);
    if (relid < FirstNormalObjectId)
        refuse_system_table(relid);
    const char* name = get_rel_name(relid);
    Oid schema = get_rel_namespace(relid);
    if (name == nullptr)
        raise_missing(relid);
    if (!is_table(get_rel_relkind(relid)))
        refuse_kind(name);
    if (isAnyTempNamespace(schema) && !isTempNamespace(schema))
        refuse_other_temp();
}

} // namespace interlock::inline table
