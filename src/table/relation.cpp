#include "table/relation.h"

#include "execution/last_word.h"
#include "execution/partition_move.h"
#include "history/history.h"
#include "history/table.h"
#include "lease/require.h"
#include "marker/marker.h"
#include "ownership/ownership.h"
#include "server/recency.h"
#include "table/own_table.h"
#include "table/relation_code.h"
#include "table/row.h"
#include "transition/transition.h"
#include "version/version.h"

namespace interlock {

namespace {

struct CacheEntry {
    Oid relid; // hash key
    RelationFacts* facts;
    uint64 changes; // invalidations seen; one that arrives while the facts load makes them stale at
                    // once
    LastUse use;
};

// More only while one transaction uses more tables: it has a lock on each.
constexpr int kKeptRelations = 8192; // about 8 kB each

HTAB* cache = nullptr;
dlist_head entries_by_use = DLIST_STATIC_INIT(entries_by_use);

void retire(RelationFacts* facts) {
    // A verb further up the stack may still read these facts, so they live on until the transaction
    // ends.
    MemoryContextSetParent(facts->memory, TopTransactionContext);
}

void mark_stale(CacheEntry* entry) {
    entry->changes++;
    if (entry->facts != nullptr)
        entry->facts->valid = false;
}

void invalidate(Datum, Oid relid) {
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

void make_room() {
    while (hash_get_num_entries(cache) >= kKeptRelations) {
        auto* entry = longest_unused<CacheEntry>(&entries_by_use);
        if (entry == nullptr)
            return;
        if (entry->facts != nullptr)
            MemoryContextDelete(entry->facts->memory);
        forget_use(&entry->use);
        hash_search(cache, &entry->relid, HASH_REMOVE, nullptr);
    }
}

bool all_not_null(Relation rel, Form_pg_index index) {
    for (int i = 0; i < index->indnkeyatts; i++) {
        AttrNumber attnum = index->indkey.values[i];
        if (attnum <= 0 || !TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attnotnull)
            return false;
    }
    return true;
}

bool is_btree(Oid index) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
    if (!HeapTupleIsValid(tuple))
        return false;
    Oid method = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relam;
    ReleaseSysCache(tuple);
    return method == BTREE_AM_OID;
}

// Whether the index names exactly one row at every moment.
bool is_unique_key(Relation rel, HeapTuple tuple) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    return index->indisunique && index->indisvalid && index->indimmediate &&
           heap_attisnull(tuple, Anum_pg_index_indpred, nullptr) && is_btree(index->indexrelid) &&
           all_not_null(rel, index);
}

// The primary key, else the narrowest NOT NULL unique index (the oldest of several); null if there
// is none. The indexes are not opened: somebody may have locked one.
HeapTuple choose_key_index(Relation rel) {
    HeapTuple best = nullptr;
    int best_width = 0;
    List* indexes = RelationGetIndexList(rel); // in the order of their oids
    ListCell* cell;
    foreach (cell, indexes) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        int width = index->indisprimary ? 0 : index->indnkeyatts;
        if (is_unique_key(rel, tuple) && (best == nullptr || width < best_width)) {
            best = heap_copytuple(tuple);
            best_width = width;
        }
        ReleaseSysCache(tuple);
    }
    list_free(indexes);
    return best;
}

void load_key_column(RelationFacts* facts, Relation index, int i) {
    KeyColumn* key = &facts->keys[i];
    Oid family = index->rd_opfamily[i];
    Oid input_type = index->rd_opcintype[i];

    key->attnum = index->rd_index->indkey.values[i];
    Form_pg_attribute attribute = TupleDescAttr(facts->columns, key->attnum - 1);
    key->type = getBaseType(attribute->atttypid);
    key->collation = attribute->attcollation;

    Oid input_function;
    getTypeInputInfo(key->type, &input_function, &key->io_parameter);
    fmgr_info_cxt(input_function, &key->input, facts->memory);
    fmgr_info_cxt(get_opfamily_proc(family, input_type, input_type, BTORDER_PROC), &key->compare,
                  facts->memory);
    Oid equals = get_opfamily_member(family, input_type, input_type, BTEqualStrategyNumber);
    fmgr_info_cxt(get_opcode(equals), &key->equal, facts->memory);
    key->equals = operator_text(equals);
    facts->key_columns = bms_add_member(facts->key_columns, key->attnum);
}

void load_key(RelationFacts* facts, Relation rel) {
    HeapTuple chosen = choose_key_index(rel);
    if (chosen == nullptr)
        return;
    facts->key_index = reinterpret_cast<Form_pg_index>(GETSTRUCT(chosen))->indexrelid;
    Relation index = index_open(facts->key_index, AccessShareLock);
    facts->key_count = index->rd_index->indnkeyatts;
    facts->keys = static_cast<KeyColumn*>(palloc0(sizeof(KeyColumn) * facts->key_count));
    for (int i = 0; i < facts->key_count; i++)
        load_key_column(facts, index, i);
    index_close(index, AccessShareLock);
}

// The conversion caches what it learns of nested row types, and those change without notice to this
// relation, so only tables without them keep it from call to call.
bool holds_nested_rows(TupleDesc columns) {
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (attribute->attisdropped)
            continue;
        Oid type = get_base_element_type(attribute->atttypid);
        if (!OidIsValid(type))
            type = getBaseType(attribute->atttypid);
        if (type_is_rowtype(type) || get_typtype(attribute->atttypid) == TYPTYPE_DOMAIN)
            return true;
    }
    return false;
}

void load_populate(RelationFacts* facts) {
    prepare_populate(&facts->populate, facts->columns->tdtypeid, facts->memory);
    facts->populate_reusable = !holds_nested_rows(facts->columns);
}

void load_concepts(RelationFacts* facts, const TriggerDesc* triggers) {
    int count = triggers != nullptr ? triggers->numtriggers : 0;
    facts->machines = static_cast<StateMachine*>(palloc0(sizeof(StateMachine) * Max(count, 1)));
    facts->requirements =
        static_cast<LeaseRequirement*>(palloc0(sizeof(LeaseRequirement) * Max(count, 1)));
    for (int i = 0; i < count; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (trigger_calls(trigger, "version_trigger"))
            facts->versioning = load_versioning(facts->columns, trigger);
        else if (trigger_calls(trigger, "transition_trigger"))
            load_state_machine(facts->columns, trigger, &facts->machines[facts->machine_count++]);
        else if (trigger_calls(trigger, "marker_trigger"))
            facts->marker = load_marker(facts->relid, facts->columns, trigger);
        else if (trigger_calls(trigger, "lease_trigger"))
            load_requirement(facts->columns, trigger,
                             &facts->requirements[facts->requirement_count++]);
        else if (trigger_calls(trigger, "ownership_trigger"))
            facts->ownership = load_ownership(facts->relid, facts->columns, trigger);
        else if (trigger_calls(trigger, "history_trigger"))
            facts->history = load_history(facts->relid, facts->columns, trigger);
    }
    if (facts->versioning != nullptr && facts->marker != nullptr)
        ignore_marker_columns(facts->versioning, facts->marker);
    if (facts->ownership != nullptr)
        judge_owned_columns(facts->ownership, facts->versioning, facts->marker);
}

// Read from the catalog. The relation cache has the key as well, and the partition's condition: it
// plans their expressions, which calls what the owner wrote with the rights of whoever asks.
void add_partition_key(RelationFacts* facts, Oid parent) {
    HeapTuple tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(parent));
    if (!HeapTupleIsValid(tuple))
        return;
    auto* form = reinterpret_cast<Form_pg_partitioned_table>(GETSTRUCT(tuple));
    Bitmapset* offsets = nullptr;
    for (int i = 0; i < form->partnatts; i++)
        offsets =
            bms_add_member(offsets, form->partattrs.values[i] - FirstLowInvalidHeapAttributeNumber);
    bool is_null;
    Datum expressions =
        SysCacheGetAttr(PARTRELID, tuple, Anum_pg_partitioned_table_partexprs, &is_null);
    if (!is_null)
        pull_varattnos(static_cast<Node*>(stringToNode(TextDatumGetCString(expressions))), 1,
                       &offsets);
    ReleaseSysCache(tuple);
    for (int bit = -1; (bit = bms_next_member(offsets, bit)) >= 0;) {
        if (bit + FirstLowInvalidHeapAttributeNumber == InvalidAttrNumber) { // the whole row
            facts->partition_columns =
                bms_add_range(facts->partition_columns, 1, facts->columns->natts);
            return;
        }
        char* name = get_attname(parent, bit + FirstLowInvalidHeapAttributeNumber, true);
        AttrNumber column = name != nullptr ? find_attribute(facts->columns, name) : 0;
        if (column != InvalidAttrNumber)
            facts->partition_columns = bms_add_member(facts->partition_columns, column);
    }
}

void load_partition_columns(RelationFacts* facts, Relation rel) {
    if (!rel->rd_rel->relispartition || facts->first_check == nullptr)
        return;
    facts->partition_root = root_of(rel);
    ListCell* cell;
    foreach (cell, get_partition_ancestors(RelationGetRelid(rel)))
        add_partition_key(facts, lfirst_oid(cell));
}

RelationFacts* load_facts(CacheEntry* entry, Relation rel) {
    uint64 changes = entry->changes;
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "interlock relation", ALLOCSET_SMALL_SIZES);
    RelationFacts* facts = in_context(memory, [&] {
        auto* result = static_cast<RelationFacts*>(palloc0(sizeof(RelationFacts)));
        result->relid = RelationGetRelid(rel);
        result->memory = memory;
        result->columns = CreateTupleDescCopyConstr(RelationGetDescr(rel));
        // Copied before any catalog is read: an invalidation on the way would free the original.
        TriggerDesc* triggers = CopyTriggerDesc(rel->trigdesc);
        load_code(result, rel, triggers);
        load_key(result, rel);
        load_populate(result);
        load_concepts(result, triggers);
        load_later_triggers(result, triggers);
        load_partition_columns(result, rel);
        result->history_table = load_history_table(rel);
        return result;
    });
    MemoryContextSetParent(memory, CacheMemoryContext);
    facts->valid = entry->changes == changes;
    entry->facts = facts;
    return facts;
}

CacheEntry* find_entry(Oid relid) {
    auto* entry = latest<CacheEntry>(&entries_by_use);
    if (entry == nullptr || entry->relid != relid)
        entry = static_cast<CacheEntry*>(hash_search(cache, &relid, HASH_FIND, nullptr));
    if (entry != nullptr) {
        note_use(&entries_by_use, &entry->use);
        return entry;
    }
    make_room();
    entry = static_cast<CacheEntry*>(hash_search(cache, &relid, HASH_ENTER, nullptr));
    entry->facts = nullptr;
    entry->changes = 0;
    note_first_use(&entries_by_use, &entry->use);
    return entry;
}

bool is_right(const CacheEntry* entry) { return entry->facts != nullptr && entry->facts->valid; }

[[noreturn]] void raise_missing(Oid relid) {
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("table with OID %u does not exist", relid)));
}

[[noreturn]] void refuse(Oid relid, AclResult why) {
    const char* name = get_rel_name(relid);
    if (name == nullptr) // dropped just now
        raise_missing(relid);
    aclcheck_error(why, OBJECT_TABLE, name);
    pg_unreachable();
}

// A lock is for those who may do on some column what it is for, as LOCK TABLE has it.
void require_privilege(Oid relid, LOCKMODE mode) {
    AclMode needed = mode == AccessShareLock ? ACL_SELECT : ACL_UPDATE | ACL_DELETE;
    Oid user = GetUserId();
    bool is_missing = false;
    if (pg_class_aclcheck_ext(relid, user, needed, &is_missing) == ACLCHECK_OK)
        return;
    if (is_missing)
        raise_missing(relid);
    if (pg_attribute_aclcheck_all(relid, user, needed, ACLMASK_ANY) != ACLCHECK_OK)
        refuse(relid, ACLCHECK_NO_PRIV);
}

void require_ownership(Oid relid) {
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
        raise_missing(relid);
    if (!owns_relation(relid, GetUserId()))
        refuse(relid, ACLCHECK_NOT_OWNER);
}

[[noreturn]] void refuse_system_table(Oid relid) {
    const char* name = get_rel_name(relid);
    if (name == nullptr)
        raise_missing(relid);
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is a system table", name),
                    errhint("Only user tables can be used with pg_interlock.")));
}

[[noreturn]] void refuse_kind(Relation rel) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("\"%s\" is not a table", RelationGetRelationName(rel)),
                    errhint("Ordinary and partitioned tables are supported.")));
}

Relation open_of_right_kind(Oid relid, LOCKMODE mode) {
    Relation rel = try_relation_open(relid, mode);
    if (rel == nullptr)
        raise_missing(relid);
    if (rel->rd_rel->relkind != RELKIND_RELATION &&
        rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
        refuse_kind(rel);
    if (RELATION_IS_OTHER_TEMP(rel))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot access temporary tables of other sessions")));
    return rel;
}

// Asks before the lock is taken, so that nobody locks what he may not, or what is not there, and
// once more when anything has changed meanwhile: the wait may have been a long one.
template <typename Require>
Relation open_if_allowed(Oid relid, LOCKMODE mode, Require&& require) {
    uint64 changes = SharedInvalidMessageCounter;
    require();
    if (relid < FirstNormalObjectId)
        refuse_system_table(relid);
    Relation rel = open_of_right_kind(relid, mode);
    if (SharedInvalidMessageCounter != changes)
        require();
    return rel;
}

} // namespace

void initialize_relation_cache() {
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(CacheEntry);
    control.hcxt = TopMemoryContext;
    cache = hash_create("interlock relations", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    CacheRegisterRelcacheCallback(invalidate, 0);
}

const RelationFacts* facts_of(Relation rel) {
    CacheEntry* entry = find_entry(RelationGetRelid(rel));
    if (is_right(entry))
        return entry->facts;
    if (entry->facts != nullptr) {
        retire(entry->facts);
        entry->facts = nullptr;
    }
    return load_facts(entry, rel);
}

const RelationFacts* kept_facts(Oid relid) {
    CacheEntry* entry = find_entry(relid);
    return is_right(entry) ? entry->facts : nullptr;
}

Relation open_table(Oid relid, LOCKMODE mode) {
    return open_if_allowed(relid, mode, [&] { require_privilege(relid, mode); });
}

Relation open_own_table(Oid relid, LOCKMODE mode) {
    return open_if_allowed(relid, mode, [&] { require_ownership(relid); });
}

void require_key(Relation rel, const RelationFacts* facts) {
    if (facts->key_count == 0)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("table \"%s\" has no key that names one row", RelationGetRelationName(rel)),
             errhint("Add a primary key, or a unique index over columns that are NOT NULL; not a "
                     "deferrable or a partial one.")));
}

List* key_column_names(Relation rel) {
    List* names = NIL;
    HeapTuple chosen = choose_key_index(rel);
    if (chosen == nullptr)
        return NIL;
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(chosen));
    for (int i = 0; i < index->indnkeyatts; i++) {
        Form_pg_attribute column =
            TupleDescAttr(RelationGetDescr(rel), index->indkey.values[i] - 1);
        names = lappend(names, pstrdup(NameStr(column->attname)));
    }
    return names;
}

List* key_column_names(Oid relid) {
    Relation rel = table_open(relid, AccessShareLock);
    List* names = key_column_names(rel);
    table_close(rel, AccessShareLock);
    return names;
}

AttrNumber column_number(Relation rel, const char* name) {
    AttrNumber attnum = get_attnum(RelationGetRelid(rel), name);
    if (attnum <= 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of table \"%s\" does not exist", name,
                               RelationGetRelationName(rel)),
                        errhint("Column names are matched exactly, with upper and lower case.")));
    return attnum;
}

void require_column_name(Relation rel, const char* name) {
    if (name[0] == '\0' || SystemAttributeByName(name) != nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("table \"%s\" cannot have a column \"%s\"",
                               RelationGetRelationName(rel), name),
                        errhint("Give the name of a column, or of one to add.")));
}

AttrNumber find_attribute(TupleDesc columns, std::string_view name) {
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (!attribute->attisdropped && name == NameStr(attribute->attname))
            return i + 1;
    }
    return InvalidAttrNumber;
}

char* qualified_name(Relation rel) {
    return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
                                      RelationGetRelationName(rel));
}

char* qualified_name(Oid relid) {
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
                                      get_rel_name(relid));
}

namespace {

// A temporary table's schema has another name in each session.
char* typed_name(Relation rel) {
    return rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP
               ? quote_qualified_identifier("pg_temp", RelationGetRelationName(rel))
               : qualified_name(rel);
}

} // namespace

char* call_for(const char* function, Relation rel) {
    return psprintf("SELECT interlock.%s(%s);", function, quote_literal_cstr(typed_name(rel)));
}

char* operator_text(Oid operator_oid) {
    HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator_oid));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for operator %u", operator_oid);
    auto* form = reinterpret_cast<Form_pg_operator>(GETSTRUCT(tuple));
    char* text =
        psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
                 NameStr(form->oprname));
    ReleaseSysCache(tuple);
    return text;
}

char* rows_of(Relation rel) {
    bool is_partitioned = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
    return psprintf("%s%s", is_partitioned ? "" : "ONLY ", qualified_name(rel));
}

bool trigger_fires(char enabled) {
    switch (enabled) {
    case TRIGGER_FIRES_ALWAYS:
        return true;
    case TRIGGER_FIRES_ON_ORIGIN:
        return SessionReplicationRole != SESSION_REPLICATION_ROLE_REPLICA;
    case TRIGGER_FIRES_ON_REPLICA:
        return SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
    default:
        return false;
    }
}

const TriggerDesc* triggers_of(Relation rel) { return CopyTriggerDesc(rel->trigdesc); }

bool trigger_calls(const Trigger* trigger, const char* function_name) {
    char* name = get_func_name(trigger->tgfoid);
    return name != nullptr && strcmp(name, function_name) == 0 &&
           get_func_namespace(trigger->tgfoid) == own_schema();
}

Oid root_of_trigger(Oid relid, const Trigger* trigger) {
    Oid root = relid;
    if (!trigger->tgisclone)
        return root;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(relid))
        if (OidIsValid(get_trigger_oid(lfirst_oid(cell), trigger->tgname, true)))
            root = lfirst_oid(cell);
    return root;
}

void refuse_taken_trigger(Relation rel, const char* trigger, const char* subject) {
    if (OidIsValid(get_trigger_oid(RelationGetRelid(rel), trigger, true)))
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("trigger \"%s\" of table \"%s\" is not about %s", trigger,
                               RelationGetRelationName(rel), subject),
                        errhint("Rename it, or drop it if nothing needs it.")));
}

void refuse_partition(Relation rel, bool is_clone) {
    if (is_clone)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" is a partition and configured with its parent",
                               RelationGetRelationName(rel)),
                        errhint("Call the function for the partitioned table.")));
}

void raise_forged(Relation rel, const char* trigger, const char* maker) {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("trigger \"%s\" of table \"%s\" is not as interlock.%s creates it",
                           trigger, RelationGetRelationName(rel), maker),
                    errhint("DROP TRIGGER %s ON %s; then call interlock.%s.",
                            quote_identifier(trigger), typed_name(rel), maker)));
}

void name_argument(const Trigger* trigger, int n, NameData* name) {
    const char* text = n < trigger->tgnargs ? trigger->tgargs[n] : "";
    int length = pg_mbcliplen(text, static_cast<int>(strlen(text)), NAMEDATALEN - 1);
    memset(NameStr(*name), 0, NAMEDATALEN);
    memcpy(NameStr(*name), text, length);
}

TriggerData* row_trigger(FunctionCallInfo fcinfo, const char* function_name, TriggerEvent timing) {
    auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
        (trigger->tg_event & TRIGGER_EVENT_TIMINGMASK) != timing)
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" must be called by %s ROW trigger", function_name,
                               timing == TRIGGER_EVENT_BEFORE ? "a BEFORE" : "an AFTER"),
                        errhint("The enabling functions of pg_interlock create it.")));
    // The rows of a foreign table have no header that says who wrote them.
    if (trigger->tg_relation->rd_rel->relkind != RELKIND_RELATION)
        ereport(ERROR,
                (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                 errmsg("function \"%s\" cannot be called for \"%s\", which is not a table",
                        function_name, RelationGetRelationName(trigger->tg_relation)),
                 errhint("DROP TRIGGER %s ON %s;", quote_identifier(trigger->tg_trigger->tgname),
                         typed_name(trigger->tg_relation))));
    return trigger;
}

namespace {

// Not so in a function that runs with the owner's rights for others, who may have truncated.
bool session_owns(Oid relid) {
    return owns_relation(relid, GetUserId()) && owns_relation(relid, GetOuterUserId());
}

} // namespace

bool fires_in_restore(const TriggerData* trigger) {
    Relation rel = trigger->tg_relation;
    return trigger->tg_trigger->tgisclone && TRIGGER_FIRED_BY_INSERT(trigger->tg_event) &&
           was_truncated(rel) && !rel->rd_rel->relhasindex &&
           session_owns(root_of_trigger(RelationGetRelid(rel), trigger->tg_trigger));
}

} // namespace interlock
