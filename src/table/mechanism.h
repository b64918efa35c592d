// What a concept says of its configuration of a table: for configure(), configuration() and the
// view guards (configure/), which name no concept. No table is opened or locked.
//
// The configuration is JSON: the arguments of the enabling function, under their names. A concept
// that is enabled several times for one table (transitions, for each state column) has an object of
// these, by the argument that tells them apart.
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// What one trigger says.
struct Setting {
    const char* key;  // the argument Mechanism::key; null when there is none
    Jsonb* arguments; // all others but rel, also those that have their default
};

// kForged: no function of ours gives such arguments.
enum class Reading : uint8 { kNone, kForged, kFound };

class SettingsPlan;

struct Mechanism {
    // The member of the settings.
    const char* name;

    // interlock.<enable>(rel, [key,] arguments), which sets all arguments anew when it is called
    // again, and interlock.<disable>(rel [, key]).
    const char* enable;
    const char* disable;
    const char* key = nullptr;

    // Reads one trigger of TablePart::trigger_function. The table is neither opened nor locked, and
    // anybody may have made the trigger: raises nothing, waits for nothing, runs no code of others.
    // Called for the triggers of a table in the order of their names.
    Reading (*read)(Oid relid, const Trigger* trigger, Setting* setting);

    // The arguments as they will be read once they are enabled, where that is not as they were
    // given. Raises what enabling raises. The table is open.
    Jsonb* (*stored_form)(Relation rel, const char* key, Jsonb* arguments) = nullptr;

    // For a concept with other functions than these two: plans the way from what is there (an
    // object, or null if there is nothing) to what is wanted (null: nothing). The table is open.
    void (*plan)(SettingsPlan* plan, Relation rel, Jsonb* present,
                 const JsonbValue* wanted) = nullptr;
};

// The statements that configure() will run: first what is removed, from the highest concept to the
// lowest, then what is set, from the lowest to the highest.
class SettingsPlan {
public:
    explicit SettingsPlan(const char* table) : table_(table) {}

    // interlock.<function>(table, <arguments>); the arguments are SQL.
    void remove(const char* function, const char* arguments) {
        removals_ = lappend(removals_, statement(function, arguments));
    }
    void set(const char* function, const char* arguments) {
        changes_ = lappend(changes_, statement(function, arguments));
    }

    // Adds the plan of a higher concept.
    void add(const SettingsPlan& higher) {
        removals_ = list_concat(higher.removals_, removals_);
        changes_ = list_concat(changes_, higher.changes_);
    }

    List* statements() const { return list_concat_copy(removals_, changes_); }

private:
    char* statement(const char* function, const char* arguments) const;

    const char* table_;
    List* removals_ = NIL;
    List* changes_ = NIL;
};

// Those of all concepts, in the order in which these are registered.
struct Mechanisms {
    const Mechanism* all[kMostParts];
    Oid functions[kMostParts]; // of their triggers
    int count;

    // -1 for a trigger of others.
    int find(Oid function) const;
};
Mechanisms all_mechanisms();

// What a table has of each mechanism, by its place in `all`.
struct TableSettings {
    Jsonb* settings[kMostParts];    // null: nothing
    const char* forged[kMostParts]; // the name of a trigger that no function of ours made, or null
};
TableSettings read_settings(const Mechanisms& mechanisms, Oid relid);

// Tables that have some, a list of Oid.
List* configured_tables(const Mechanisms& mechanisms);

} // namespace interlock::inline table
