// The descriptor of a concept (marker, lease, history, ...: a folder of src/). The folders below
// the concepts call them by this descriptor and name none of them.
//
// Each concept defines one constant of this type in its concept.cpp. src/pg_interlock.cpp is the
// one file that names all concepts. It registers them when the server loads the library. A member
// that a concept does not need stays null.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {
struct SweepTask; // sweeper/task.h
} // namespace interlock::inline sweeper
namespace interlock::inline table {
struct TableFacet; // table/facet.h
} // namespace interlock::inline table

namespace interlock::inline server {

struct UsageReport; // server/usage_report.h

struct Concept {
    const char* name;

    // Defines the settings that exist with and without preload. Called once, when the library is
    // loaded.
    void (*define_settings)() = nullptr;

    // Prepares everything that needs shared_preload_libraries: requests shared memory
    // (server/shared_memory.h), starts background workers, and defines the settings of both. Called
    // once, when the library is loaded, and only if it is preloaded.
    void (*preload)() = nullptr;

    // Called by the sweeper's launcher when it starts. At that time the server has started or was
    // promoted, and writes are allowed. It is called again if the server restarts the launcher.
    void (*launcher_starts)() = nullptr;

    // The concept's task in each run of the sweeper. Tasks run in the order in which the concepts
    // are registered.
    const SweepTask* sweep = nullptr;

    // Reports how much of the concept's shared memory is used, for view usage. Without preload it
    // reports nothing.
    void (*report_usage)(UsageReport* report) = nullptr;

    // Called by resync_sequences. A subscription has written rows of this database. So what
    // sessions and shared memory have cached of rows, and of numbers for new rows, may be out of
    // date and must be dropped.
    void (*forget_rows)() = nullptr;

    // An array of the concept's table metadata and row checks.
    const TableFacet* facets = nullptr;
    int facet_count = 0;
};

// A constant array of pointers to constants.
struct Concepts {
    const Concept* const* first;
    int count;

    const Concept* const* begin() const { return first; }
    const Concept* const* end() const { return first + count; }
};

// The registered concepts: for (const Concept* each : concepts()). There are none before the
// library is loaded.
Concepts concepts();

// Registers all concepts and defines their settings. If the library is preloaded, also calls
// preload(). Only _PG_init calls this. The array must live as long as the process.
void register_concepts(Concepts all);

} // namespace interlock::inline server
