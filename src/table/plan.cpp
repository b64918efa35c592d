#include "table/plan.h"

#include "server/lru.h"
#include "server/scope.h"
#include "table/row.h"

namespace interlock::inline table {

constexpr int kColumnBytes = MaxHeapAttributeNumber / 8 + 1;
constexpr int kMaxCachedPlans = 8192; // about 17 kB each

namespace {

struct PlanKey {
    const char* kind;
    Oid relid;
    Oid key_index;
    AttrNumber subject;
    uint8 columns[kColumnBytes];
    // The server plans again for another role or search_path, and not for this: an owner's
    // statement has policies in one call, where they are forced, and none in another.
    bool is_past_policies;
    uint8 padding[4]; // the key is compared as bytes
};

} // namespace

static_assert(sizeof(PlanKey) == sizeof(char*) + 2 * sizeof(Oid) + sizeof(AttrNumber) +
                                     kColumnBytes + sizeof(bool) + sizeof(PlanKey::padding));

namespace {

struct PlanEntry {
    PlanKey key;
    SPIPlanPtr plan;
    LastUse use;
};

struct RetiredPlan {
    SPIPlanPtr plan;
    RetiredPlan* next;
};

} // namespace

static HTAB* plans = nullptr;
static dlist_head plans_by_use = DLIST_STATIC_INIT(plans_by_use);
static RetiredPlan* retired_plans = nullptr;

static void retire(SPIPlanPtr plan) {
    auto* retired =
        static_cast<RetiredPlan*>(MemoryContextAlloc(TopMemoryContext, sizeof(RetiredPlan)));
    retired->plan = plan;
    retired->next = retired_plans;
    retired_plans = retired;
}

static void free_retired_plans() {
    while (retired_plans != nullptr) {
        RetiredPlan* next = retired_plans->next;
        SPI_freeplan(retired_plans->plan);
        pfree(retired_plans);
        retired_plans = next;
    }
}

// Takes the entry out and returns its plan.
static SPIPlanPtr remove_entry(PlanEntry* entry) {
    SPIPlanPtr plan = entry->plan;
    forget_use(&entry->use);
    hash_search(plans, &entry->key, HASH_REMOVE, nullptr);
    return plan;
}

// find_plan() would return none of them.
static void free_invalid_plans() {
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, plans);
    while (auto* entry = static_cast<PlanEntry*>(hash_seq_search(&scan)))
        if (!SPI_plan_is_valid(entry->plan))
            SPI_freeplan(remove_entry(entry));
}

static void end_transaction(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    free_retired_plans();
    if (forget_stale_tables())
        free_invalid_plans();
}

// Whether one more plan can be cached, if need be by evicting one that is not running.
static bool make_room() {
    while (hash_get_num_entries(plans) >= kMaxCachedPlans) {
        auto* entry = longest_unused<PlanEntry>(&plans_by_use);
        if (entry == nullptr)
            return false;
        SPI_freeplan(remove_entry(entry));
    }
    return true;
}

static PlanKey make_plan_key(const PlanShape& shape) {
    PlanKey key = {};
    key.relid = shape.relid;
    key.key_index = shape.key;
    key.kind = shape.kind.name;
    key.subject = shape.subject;
    key.is_past_policies = InNoForceRLSOperation();
    for (int column = -1; (column = bms_next_member(shape.columns, column)) >= 0;)
        key.columns[column / 8] |= 1 << (column % 8);
    return key;
}

// The same call is often repeated, and hashing a key takes longer than comparing it.
static PlanEntry* find_entry(const PlanKey& key) {
    auto* entry = latest<PlanEntry>(&plans_by_use);
    if (entry != nullptr && memcmp(&entry->key, &key, sizeof(PlanKey)) == 0)
        return entry;
    return static_cast<PlanEntry*>(hash_search(plans, &key, HASH_FIND, nullptr));
}

// Whether statistics must not decide how the rows are found: they are older than the rows.
static bool is_planned_at_once(const PlanShape& shape) { return shape.by_index || shape.in_order; }

// Makes the generic plan unless there is a valid one: SPI finds it when it runs. The server
// requires a resource owner for saved plans only.
static void plan_at_once(const PlanShape& shape, SPIPlanPtr plan, bool is_kept) {
    with_settings([&] {
        for (const char* setting : {"jit", shape.by_index ? "enable_seqscan" : nullptr,
                                    shape.in_order ? "enable_bitmapscan" : nullptr})
            if (setting != nullptr)
                (void)set_config_option(setting, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                                        true, 0, false);
        CachedPlan* cached = SPI_plan_get_cached_plan(plan);
        if (cached != nullptr)
            ReleaseCachedPlan(cached, is_kept ? CurrentResourceOwner : nullptr);
    });
}

Statement::Statement() {
    initStringInfo(&text_);
    types_ = static_cast<Oid*>(palloc(sizeof(Oid) * capacity_));
}

int Statement::parameter(Oid type) {
    if (count_ == capacity_) {
        capacity_ *= 2;
        types_ = static_cast<Oid*>(repalloc(types_, sizeof(Oid) * capacity_));
    }
    types_[count_++] = type;
    return count_;
}

void Statement::add(const char* format, ...) {
    for (;;) {
        va_list arguments;
        va_start(arguments, format);
        int needed = appendStringInfoVA(&text_, format, arguments);
        va_end(arguments);
        if (needed == 0)
            return;
        enlargeStringInfo(&text_, needed);
    }
}

Parameters::Parameters(int capacity) : capacity_(capacity) {
    values_ = static_cast<Datum*>(palloc(sizeof(Datum) * capacity));
    nulls_ = static_cast<char*>(palloc(capacity + 1));
}

void Parameters::add(Datum value, bool is_null) {
    Assert(count_ < capacity_);
    values_[count_] = value;
    nulls_[count_++] = is_null ? 'n' : ' ';
}

void add_assignments(Statement* statement, const TableInfo* info, const Bitmapset* columns) {
    const char* separator = "";
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        Form_pg_attribute attribute = TupleDescAttr(info->columns, column - 1);
        statement->add("%s%s = $%d", separator, quote_identifier(NameStr(attribute->attname)),
                       statement->parameter(attribute->atttypid));
        separator = ", ";
    }
}

void add_changes(Parameters* parameters, const Changes& changes) {
    for (int i = 0; i < changes.count; i++)
        parameters->add(changes.values[i], changes.nulls[i]);
}

void add_key_condition(Statement* statement, const TableInfo* info, const Key& key) {
    for (int i = 0; i < key.by->count; i++) {
        const KeyColumn& column = key.by->columns[i];
        Oid type = TupleDescAttr(info->columns, column.attnum - 1)->atttypid;
        statement->add("%st.%s%s %s $%d", i > 0 ? " AND " : "",
                       quote_identifier(column_name(info, column.attnum)), enum_cast(type),
                       operator_text(column.equals), statement->parameter(column.type));
    }
}

void add_key(Parameters* parameters, const Key& key) {
    for (int i = 0; i < key.by->count; i++)
        parameters->add(key.values[i]);
}

void initialize_plan_cache() {
    HASHCTL control = {};
    control.keysize = sizeof(PlanKey);
    control.entrysize = sizeof(PlanEntry);
    control.hcxt = TopMemoryContext;
    plans = hash_create("interlock plans", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    RegisterXactCallback(end_transaction, nullptr);
}

// What a rule has put in the place of the statement, and depends on no table.
static bool is_rules(const Query* query) {
    return query->commandType == CMD_UTILITY || query->rtable == NIL;
}

// The table of a statement is the first of its range table, as the parser makes it
// (setTargetTable); policies and rules may name any others. What a rule has made of the statement
// (rewriteRuleAction) has it at some place.
static bool is_of_table(const Query* query, const CachedPlanSource* source, Oid relid) {
    if (is_rules(query))
        return true;
    auto* first = static_cast<RangeTblEntry*>(linitial(query->rtable));
    return query->querySource == QSRC_ORIGINAL && first->rtekind == RTE_RELATION
               ? first->relid == relid
               : list_member_oid(source->relationOids, relid);
}

static bool is_empty(const CachedPlanSource* source) {
    ListCell* cell;
    foreach (cell, source->query_list)
        if (!is_rules(static_cast<Query*>(lfirst(cell))))
            return false;
    return true;
}

// Dropping the rule does not make it invalid.
static bool outlives_rules(SPIPlanPtr plan) {
    ListCell* cell;
    foreach (cell, SPI_plan_get_plan_sources(plan))
        if (is_empty(static_cast<CachedPlanSource*>(lfirst(cell))))
            return true;
    return false;
}

static bool names_table(SPIPlanPtr plan, Oid relid) {
    ListCell* cell;
    foreach (cell, SPI_plan_get_plan_sources(plan)) {
        auto* source = static_cast<CachedPlanSource*>(lfirst(cell));
        ListCell* query;
        foreach (query, source->query_list)
            if (!is_of_table(static_cast<Query*>(lfirst(query)), source, relid))
                return false;
    }
    return true;
}

// The extension's own tables are not locked before: one can be gone, and another in its place.
static void require_table(SPIPlanPtr plan, Oid relid) {
    if (!OidIsValid(relid) || names_table(plan, relid))
        return;
    const char* name = get_rel_name(relid);
    if (name != nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\", or its schema, was renamed during the call", name),
                        errhint("Call it again.")));
}

static bool is_usable(SPIPlanPtr plan, Oid relid) {
    return SPI_plan_is_valid(plan) &&
           (!OidIsValid(relid) || (names_table(plan, relid) && !outlives_rules(plan)));
}

SPIPlanPtr find_plan(const PlanShape& shape) {
    PlanEntry* entry = find_entry(make_plan_key(shape));
    if (entry == nullptr)
        return nullptr;
    if (!is_usable(entry->plan, shape.relid)) {
        retire(remove_entry(entry));
        return nullptr;
    }
    note_use(&plans_by_use, &entry->use);
    SPIPlanPtr plan = entry->plan; // what follows may plan other statements
    if (is_planned_at_once(shape))
        plan_at_once(shape, plan, true); // again if the search_path or the role is another
    return plan;
}

static void keep(const PlanShape& shape, SPIPlanPtr plan) {
    PlanKey key = make_plan_key(shape);
    bool found;
    auto* entry = static_cast<PlanEntry*>(hash_search(plans, &key, HASH_ENTER, &found));
    if (found) {
        retire(entry->plan);
        note_use(&plans_by_use, &entry->use);
    } else {
        note_first_use(&plans_by_use, &entry->use);
    }
    entry->plan = plan;
}

TablePlan table_plan(SPIPlanPtr plan, Oid relid) {
    auto* result = static_cast<PreparedTablePlan*>(palloc(sizeof(PreparedTablePlan)));
    *result = {plan, relid};
    return result;
}

SPIPlanPtr cache_plan(const PlanShape& shape, const Statement& statement) {
    bool is_cached = make_room();
    SPIPlanPtr plan =
        SPI_prepare_cursor(statement.text(), statement.parameter_count(), statement.types(),
                           CURSOR_OPT_GENERIC_PLAN | kOwnStatement);
    if (plan == nullptr)
        elog(ERROR, "could not prepare \"%s\": %s", statement.text(),
             SPI_result_code_string(SPI_result));
    require_table(plan, shape.relid);
    if (is_cached) { // first: an error in planning would leave it behind
        SPI_keepplan(plan);
        keep(shape, plan);
    }
    if (is_planned_at_once(shape))
        plan_at_once(shape, plan, is_cached);
    return plan;
}

static uint64 check_run(int result, TablePlan plan) {
    if (result < 0)
        elog(ERROR, "could not run a plan: %s", SPI_result_code_string(result));
    require_table(plan->plan, plan->relid);
    return SPI_processed;
}

uint64 run_plan(TablePlan plan, const Parameters& parameters, long limit) {
    return check_run(
        SPI_execute_plan(plan->plan, parameters.values(), parameters.nulls(), false, limit), plan);
}

uint64 run_plan_as_of(Snapshot snapshot, TablePlan plan, const Parameters& parameters, long limit) {
    return check_run(SPI_execute_snapshot(plan->plan, parameters.values(), parameters.nulls(),
                                          snapshot, InvalidSnapshot, true, false, limit),
                     plan);
}

void run_plan_into(DestReceiver* receiver, TablePlan plan, const Parameters& parameters) {
    int count = SPI_getargcount(plan->plan);
    SPIExecuteOptions options = {};
    options.params = makeParamList(count);
    options.dest = receiver;
    for (int i = 0; i < count; i++)
        options.params->params[i] = {parameters.values()[i], parameters.nulls()[i] == 'n',
                                     PARAM_FLAG_CONST, SPI_getargtypeid(plan->plan, i)};
    check_run(SPI_execute_plan_extended(plan->plan, &options), plan);
}

static void require_type(int column, Oid type) {
    TupleDesc columns = SPI_tuptable != nullptr ? SPI_tuptable->tupdesc : nullptr;
    if (columns == nullptr || columns->natts <= column ||
        TupleDescAttr(columns, column)->atttypid != type)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("a table was altered during the call"),
                        errhint("A function that converts or checks a value, or a policy, has "
                                "renamed or altered its columns.")));
}

static Oid type_of(const TableInfo* info, AttrNumber column) {
    return TupleDescAttr(info->columns, column - 1)->atttypid;
}

void require_result(std::initializer_list<Oid> types) {
    int column = 0;
    for (Oid type : types)
        require_type(column++, type);
}

void require_columns(const TableInfo* info, const AttrNumber* columns, int count) {
    for (int i = 0; i < count; i++)
        require_type(i, type_of(info, columns[i]));
}

void require_columns(const TableInfo* info, const Bitmapset* columns) {
    int i = 0;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        require_type(i++, type_of(info, static_cast<AttrNumber>(column)));
}

void run_command(const char* text) {
    int result = SPI_execute(text, false, 0);
    if (result < 0)
        elog(ERROR, "could not run \"%s\": %s", text, SPI_result_code_string(result));
}

List* query_oids(const char* text) {
    List* oids = NIL;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        run_command(text);
        in_context(caller, [&] {
            for (uint64 i = 0; i < SPI_processed; i++) {
                bool is_null;
                Datum oid =
                    SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &is_null);
                oids = lappend_oid(oids, DatumGetObjectId(oid));
            }
            return 0;
        });
    });
    return oids;
}

} // namespace interlock::inline table
