#include "lease/pinner.h"

#include "lease/queue.h"

namespace interlock::lease {

constexpr uint32 kListUnits = 1;

// Puts the process at the front of the list, in a new piece of it if the first one is full.
static LeaseRoom push(Lease* lease, Ref* list, int process, LeaseAccess access) {
    if (*list == 0 || at<PinList>(*list)->count == lengthof(PinList::processes)) {
        if (!add_to_charge(&lease->charge, kListUnits, access))
            return LeaseRoom::kRoleIsFull;
        Ref piece = allocate_piece(sizeof(PinList), access);
        if (piece == 0) {
            subtract_from_charge(&lease->charge, kListUnits);
            return LeaseRoom::kFull;
        }
        at<PinList>(piece)->next = *list;
        at<PinList>(piece)->count = 0;
        *list = piece;
    }
    auto* first = at<PinList>(*list);
    first->processes[first->count++] = process;
    return LeaseRoom::kYes;
}

static int pop(Lease* lease, Ref* list) {
    auto* first = at<PinList>(*list);
    int process = first->processes[--first->count];
    if (first->count == 0) {
        Ref next = first->next;
        free_piece(*list, sizeof(PinList));
        subtract_from_charge(&lease->charge, kListUnits);
        *list = next;
    }
    return process;
}

static int* place_of(Ref list, int process) {
    for (Ref ref = list;; ref = at<PinList>(ref)->next)
        for (int i = 0; i < at<PinList>(ref)->count; i++)
            if (at<PinList>(ref)->processes[i] == process)
                return &at<PinList>(ref)->processes[i];
}

static LeaseRoom add_to_list(Lease* lease, int process, LeaseAccess access) {
    Ref list = lease->pins == 1 ? 0 : lease->pinned_by;
    LeaseRoom room = LeaseRoom::kYes;
    if (list == 0)
        room = push(lease, &list, static_cast<int>(lease->pinned_by), access);
    if (room == LeaseRoom::kYes)
        room = push(lease, &list, process, access);
    if (room == LeaseRoom::kYes)
        lease->pinned_by = list;
    return room;
}

// The last one left has its place in the lease again.
static void remove_from_list(Lease* lease, int process) {
    int* place = place_of(lease->pinned_by, process);
    int other = pop(lease, &lease->pinned_by);
    if (other != process)
        *place = other;
    if (lease->pins == 2)
        lease->pinned_by = static_cast<uint32>(pop(lease, &lease->pinned_by));
}

LeaseRoom add_pinner(Lease* lease, LeaseAccess access) {
    int process = number_of_process();
    LeaseRoom room = LeaseRoom::kYes;
    if (lease->pins == 0)
        lease->pinned_by = static_cast<uint32>(process);
    else
        room = add_to_list(lease, process, access);
    lease->pins += room == LeaseRoom::kYes;
    return room;
}

void remove_pinner(Lease* lease) {
    if (lease->pins > 1)
        remove_from_list(lease, number_of_process());
    lease->pins--;
}

List* list_pinners(const Lease& lease) {
    List* pids = NIL;
    for_each_pinner(lease, [&pids](Pinner pinner) { pids = lappend_int(pids, pinner.pid); });
    return pids;
}

Datum array_of_pids(const List* pids) {
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * (list_length(pids) + 1)));
    for (int i = 0; i < list_length(pids); i++)
        values[i] = Int32GetDatum(list_nth_int(pids, i));
    return PointerGetDatum(
        construct_array(values, list_length(pids), INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

Pinner pinner_of(int process) {
    return {GetPGProcByNumber(process)->pid, waiter_number(process + 1)->pinning_since};
}

} // namespace interlock::lease
