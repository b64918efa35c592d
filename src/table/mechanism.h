// How a concept describes its configuration of a table. configure(), configuration() and view
// guards (configure/) use it and name no concept. No table is opened or locked.
//
// The configuration is JSON: the arguments of the enabling function by name. A concept can be
// enabled several times for one table, such as transitions for each state column. Its configuration
// is then an object of such objects, with the value of the distinguishing argument as the member
// name.
#pragma once

#include "table/info.h"
#include "table/trigger.h"

namespace interlock::inline table {

// The configuration that one trigger has.
struct Setting {
    const char* key;  // argument Mechanism::key; null: there is none
    Jsonb* arguments; // all other arguments but rel, also those with their default
};

// kForged: no function of the extension creates such arguments.
enum class Reading : uint8 { kNone, kForged, kFound };

class SettingsPlan;

struct Mechanism {
    // The name of the mechanism's member in the settings.
    const char* name;

    // interlock.<enable>(rel, [key,] arguments) sets all arguments, also when it is called a second
    // time. interlock.<disable>(rel [, key]) ends it.
    const char* enable;
    const char* disable;
    const char* key = nullptr;

    // What to do instead on a table that Citus distributes. Null: the mechanism works there.
    const char* distributed_hint = nullptr;

    // Reads one trigger of TableFacet::trigger_function. The table is neither opened nor locked,
    // and any role may have created the trigger. So it raises nothing, waits for nothing, and runs
    // no code of others. It is called for the triggers of a table in the order of their names.
    Reading (*read)(Oid relid, const Trigger* trigger, Setting* setting);

    // The arguments as they will be read after they are enabled, if that differs from the given
    // form. Raises the errors of the enabling function. The table is open.
    Jsonb* (*stored_form)(Relation rel, const char* key, Jsonb* arguments) = nullptr;

    // For a concept that has other functions than these two. Plans how to get from the current
    // settings (null: none) to the wanted settings (null: none). The table is open.
    void (*plan)(SettingsPlan* plan, Relation rel, Jsonb* present,
                 const JsonbValue* wanted) = nullptr;
};

// The statements that configure() will run. It first removes settings, from the highest concept to
// the lowest. Then it sets them, from the lowest concept to the highest.
class SettingsPlan {
public:
    explicit SettingsPlan(const char* table) : table_(table) {}

    // Adds interlock.<function>(table, <arguments>). The arguments are SQL.
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

// Raises 0A000 if the mechanism with that enabling function does not work on tables that Citus
// distributes, and the table is one.
void require_distributable(Relation rel, Distribution distribution, const char* enable);

// Raises 39P01 for a trigger that interlock.<enable> has not created, and for one of two, and the
// error above. Null: the trigger is gone.
void require_own(Relation rel, const TableInfo* info, const OwnTrigger* own, const char* enable);

// For a function that may enable a mechanism: raises the error above, and 42809 if a partition of
// the table is a foreign table, in which no trigger could check a row. Other functions raise
// nothing.
void require_enableable(Relation rel, const char* function);

// The mechanisms of all concepts, in the order in which the concepts are registered.
struct Mechanisms {
    const Mechanism* all[kMostFacets];
    Oid functions[kMostFacets]; // of their triggers
    int count;

    // The place of the mechanism with that trigger function. -1 for other trigger functions.
    int find(Oid function) const;
};
Mechanisms all_mechanisms();

// What a table has of each mechanism, by the place in Mechanisms::all.
struct TableSettings {
    Jsonb* settings[kMostFacets];    // null: nothing
    const char* forged[kMostFacets]; // name of a trigger that no function of ours made, or null
};
TableSettings read_settings(const Mechanisms& mechanisms, Oid relid);

// Tables with some settings, a list of Oid.
List* configured_tables(const Mechanisms& mechanisms);

} // namespace interlock::inline table
