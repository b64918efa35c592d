// The view blocking: who waits for whom, with the end of each chain.

#include "idempotency/waits.h"
#include "lease/waits.h"
#include "overview/server_waits.h"
#include "server/result_row.h"
#include "server/role_usage.h"
#include "server/waits.h"

namespace interlock::overview {

namespace {

// Where a chain ends: at what does not wait, or nowhere.
struct End {
    Blocker head;
    int depth; // steps to it
    bool is_circle;
};

enum class Walk { kNotYet, kOnTheWay, kDone };

struct Process {
    int pid; // hash key
    const Wait* wait;
    Walk walk;
    End end;
};

} // namespace

static HTAB* find_processes(List* waits);
static End end_of(HTAB* processes, const Blocker& blocker);
static void put_row(ReturnSetInfo* output, const Wait& wait, const Blocker* blocker,
                    const End& end);

extern "C" {
PG_FUNCTION_INFO_V1(list_blocking);

Datum list_blocking(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    List* waits = NIL;
    lease::report_lease_waits(&waits);
    idempotency::report_claim_waits(&waits);
    report_server_waits(&waits);
    HTAB* processes = find_processes(waits);
    ListCell* cell;
    foreach (cell, waits) {
        CHECK_FOR_INTERRUPTS();
        auto* wait = static_cast<const Wait*>(lfirst(cell));
        if (wait->blocker_count == 0)
            put_row(output, *wait, nullptr, {});
        for (int i = 0; i < wait->blocker_count; i++)
            put_row(output, *wait, &wait->blockers[i], end_of(processes, wait->blockers[i]));
    }
    return 0;
}
}

static HTAB* find_processes(List* waits) {
    HASHCTL control = {};
    control.keysize = sizeof(int);
    control.entrysize = sizeof(Process);
    control.hcxt = CurrentMemoryContext;
    HTAB* processes = hash_create("interlock waiting processes", 256, &control,
                                  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    ListCell* cell;
    foreach (cell, waits) {
        auto* wait = static_cast<const Wait*>(lfirst(cell));
        bool found;
        auto* process =
            static_cast<Process*>(hash_search(processes, &wait->pid, HASH_ENTER, &found));
        if (!found) {
            process->wait = wait;
            process->walk = Walk::kNotYet;
        }
    }
    return processes;
}

// Null: it does not wait, or for what is not known.
static Process* waiting_process(HTAB* processes, const Blocker& blocker) {
    if (blocker.pid == 0)
        return nullptr;
    auto* process = static_cast<Process*>(hash_search(processes, &blocker.pid, HASH_FIND, nullptr));
    return process != nullptr && process->wait->blocker_count > 0 ? process : nullptr;
}

// From the end of the way back to its start, each is one step further.
static End step_back(List* way, End end) {
    for (int i = list_length(way) - 1; i >= 0; i--) {
        auto* process = static_cast<Process*>(list_nth(way, i));
        end.depth++;
        process->end = end;
        process->walk = Walk::kDone;
    }
    return end;
}

// Of several blockers of a process the first is followed. Each process is passed once, however many
// chains lead to it.
static End end_of(HTAB* processes, const Blocker& blocker) {
    List* way = NIL;
    const Blocker* at = &blocker;
    for (;;) {
        Process* process = waiting_process(processes, *at);
        End end = {*at, 1, false};
        if (process != nullptr && process->walk == Walk::kNotYet) {
            process->walk = Walk::kOnTheWay;
            way = lappend(way, process);
            at = &process->wait->blockers[0];
            continue;
        }
        if (process != nullptr && process->walk == Walk::kOnTheWay)
            end = {{}, 1, true};
        else if (process != nullptr)
            end = {process->end.head, process->end.depth + 1, process->end.is_circle};
        // The first step is that of the caller.
        end.depth--;
        end = step_back(way, end);
        end.depth++;
        return end;
    }
}

static void put_text(Datum* value, bool* is_null, const char* text) {
    *is_null = text == nullptr;
    if (text != nullptr)
        *value = CStringGetTextDatum(text);
}

static void put_time(Datum* value, bool* is_null, TimestampTz time) {
    *is_null = time == 0;
    *value = TimestampTzGetDatum(time);
}

constexpr int kBlockerColumns = 6;

// pid, holder, role, until, prepared, what
static void put_blocker(Datum* values, bool* nulls, const Blocker& blocker) {
    values[0] = Int32GetDatum(blocker.pid);
    nulls[0] = blocker.pid == 0;
    put_text(&values[1], &nulls[1], blocker.holder);
    put_text(&values[2], &nulls[2], OidIsValid(blocker.role) ? role_name(blocker.role) : nullptr);
    put_time(&values[3], &nulls[3], blocker.until);
    values[4] = TransactionIdGetDatum(blocker.prepared);
    nulls[4] = blocker.prepared == InvalidTransactionId;
    put_text(&values[5], &nulls[5], blocker.what);
}

constexpr int kWaitColumns = 6;

// pid, kind, name, holder, rel, since; then of the blocker and of the head; then depth, is_circle
static void put_row(ReturnSetInfo* output, const Wait& wait, const Blocker* blocker,
                    const End& end) {
    constexpr int kDepth = kWaitColumns + 2 * kBlockerColumns;
    Datum values[kDepth + 2] = {};
    bool nulls[kDepth + 2] = {};
    values[0] = Int32GetDatum(wait.pid);
    put_text(&values[1], &nulls[1], wait.kind);
    put_text(&values[2], &nulls[2], wait.name);
    put_text(&values[3], &nulls[3], wait.holder);
    values[4] = ObjectIdGetDatum(wait.rel);
    nulls[4] = !OidIsValid(wait.rel);
    put_time(&values[5], &nulls[5], wait.since);
    put_blocker(&values[kWaitColumns], &nulls[kWaitColumns],
                blocker != nullptr ? *blocker : Blocker{});
    put_blocker(&values[kWaitColumns + kBlockerColumns], &nulls[kWaitColumns + kBlockerColumns],
                end.head);
    values[kDepth] = Int32GetDatum(end.depth);
    nulls[kDepth] = blocker == nullptr;
    values[kDepth + 1] = BoolGetDatum(end.is_circle);
    add_result_row(output, values, nulls);
}

} // namespace interlock::overview
