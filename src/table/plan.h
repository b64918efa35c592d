// Statements on user tables: their text, their parameters, and the prepared plans that a session
// keeps.
//
// A plan is cached by relation, kind of statement and set of columns. It is checked before every
// use, as the server's foreign-key triggers check theirs. A plan that was invalidated is dropped
// and its text is built again, because names may have changed. A dropped plan may still run in a
// calling function, so it is freed at the end of the transaction.
//
// If there are too many plans, the least recently used one is evicted. A plan that this transaction
// has used is not evicted. If no plan can be evicted, the new plan is not cached and ends with the
// SPI connection.
#pragma once

#include "table/key.h"
#include "table/relation.h"

namespace interlock::inline table {

struct Changes;

// What a plan does. The name is a literal that no other statement has. It is compared by its
// address.
struct PlanKind {
    template <size_t size>
    consteval explicit PlanKind(const char (&literal)[size]) : name(literal) {}
    const char* name;
};

// The key of the plan cache: everything that the text of the plan depends on.
struct PlanShape {
    Oid relid; // a table that the statement names; invalid: none
    PlanKind kind;
    const Bitmapset* columns = nullptr; // the columns it sets or reads
    AttrNumber subject = 0; // the column it is about if a table can have several, or a variant
    bool by_index = false;  // planned once and to use an index, however small the table is now
    Oid key = InvalidOid;   // the index of the key that names the row
    bool in_order = false;  // planned by an index in the order of the rows wanted, if there is one
};

// This option marks the statements that cache_plan() prepares, for a planner hook
// (statement/running.h). The server passes on options that it does not know.
constexpr int kOwnStatement = 1 << 30;

// SQL text under construction with the types of its parameters. Lives in the current context.
class Statement {
public:
    Statement();
    // Adds a parameter and returns its number.
    int parameter(Oid type);
    void add(const char* format, ...) pg_attribute_printf(2, 3);
    const char* text() const { return text_.data; }
    Oid* types() const { return types_; }
    int parameter_count() const { return count_; }

private:
    StringInfoData text_;
    Oid* types_;
    int count_ = 0;
    int capacity_ = 16;
};

// The values for one run, added in the order of the statement's parameters.
class Parameters {
public:
    explicit Parameters(int capacity);
    void add(Datum value, bool is_null = false);
    void add(NullableDatum value) { add(value.value, value.isnull); }
    Datum* values() const { return values_; }
    const char* nulls() const { return nulls_; }

private:
    Datum* values_;
    char* nulls_;
    int count_ = 0;
    [[maybe_unused]] int capacity_; // for assertions
};

// Adds "column" = $n, ... for the columns.
void add_assignments(Statement* statement, const TableInfo* info, const Bitmapset* columns);
void add_changes(Parameters* parameters, const Changes& changes);

// Adds key = $n AND ...
void add_key_condition(Statement* statement, const TableInfo* info, const Key& key);
void add_key(Parameters* parameters, const Key& key);

void initialize_plan_cache();

// Used as a pointer, because the values of a struct would not survive a longjmp in the functions
// that run plans.
struct PreparedTablePlan {
    SPIPlanPtr plan;
    Oid relid; // as in PlanShape
};
using TablePlan = const PreparedTablePlan*;

TablePlan table_plan(SPIPlanPtr plan, Oid relid);

// find_plan() returns the cached plan of this shape, or null if the plan must be built.
// cache_plan() builds it, and caches it if there is room.
SPIPlanPtr find_plan(const PlanShape& shape);
SPIPlanPtr cache_plan(const PlanShape& shape, const Statement& statement);

// The plan of the statement that build(Statement*) writes. Call it inside with_spi.
template <typename Build>
TablePlan plan_of(const PlanShape& shape, Build&& build) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Build>>);
    SPIPlanPtr plan = find_plan(shape);
    if (plan != nullptr)
        return table_plan(plan, shape.relid);
    Statement statement;
    build(&statement);
    return table_plan(cache_plan(shape, statement), shape.relid);
}

// Runs a plan with a fresh snapshot and returns the number of rows, at most `limit` (0: all).
// Raises 55000 if the name of the table now means another table. That is possible because no lock
// prevents a rename of the schema, and after a wait for another lock the server parses the
// statement again.
uint64 run_plan(TablePlan plan, const Parameters& parameters, long limit = 0);

// The same with the given snapshot, for a plan that only reads.
uint64 run_plan_as_of(Snapshot snapshot, TablePlan plan, const Parameters& parameters,
                      long limit = 0);

// The same with a fresh snapshot, for a plan whose rows go to the receiver one at a time.
void run_plan_into(DestReceiver* receiver, TablePlan plan, const Parameters& parameters);

// Raises 55000 unless the returned rows have columns of these types, or of the types in the
// metadata. Call it before a value is used as a value of its type. Code of other roles may have run
// since the metadata was read. It can have renamed columns, and altered a table that is not open.
void require_result(std::initializer_list<Oid> types);
void require_columns(const TableInfo* info, const AttrNumber* columns, int count);
void require_columns(const TableInfo* info, const Bitmapset* columns);

// Runs one statement without parameters, for functions that configure tables.
void run_command(const char* text);

// Runs a query for one column of OIDs and returns them, in the caller's memory context. Call it
// outside of with_spi.
List* query_oids(const char* text);

static_assert(std::is_trivially_destructible_v<Statement>);
static_assert(std::is_trivially_destructible_v<Parameters>);

} // namespace interlock::inline table
