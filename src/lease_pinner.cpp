#include "lease_pinner.h"

#include "lease_queue.h"

namespace interlock {

namespace {

// Puts the process at the front of the list, in a new piece of it if the first one is full.
bool push(Ref* list, int process) {
    if (*list == 0 || at<PinList>(*list)->count == lengthof(PinList::processes)) {
        Ref piece = allocate_piece(sizeof(PinList));
        if (piece == 0)
            return false;
        at<PinList>(piece)->next = *list;
        at<PinList>(piece)->count = 0;
        *list = piece;
    }
    auto* first = at<PinList>(*list);
    first->processes[first->count++] = process;
    return true;
}

int pop(Ref* list) {
    auto* first = at<PinList>(*list);
    int process = first->processes[--first->count];
    if (first->count == 0) {
        Ref next = first->next;
        free_piece(*list);
        *list = next;
    }
    return process;
}

int* place_of(Ref list, int process) {
    for (Ref ref = list;; ref = at<PinList>(ref)->next)
        for (int i = 0; i < at<PinList>(ref)->count; i++)
            if (at<PinList>(ref)->processes[i] == process)
                return &at<PinList>(ref)->processes[i];
}

bool add_to_list(Lease* lease, int process) {
    Ref list = lease->pins == 1 ? 0 : lease->pinned_by;
    if (list == 0 && !push(&list, static_cast<int>(lease->pinned_by)))
        return false;
    if (!push(&list, process))
        return false;
    lease->pinned_by = list;
    return true;
}

// The last one left has its place in the lease again.
void remove_from_list(Lease* lease, int process) {
    int* place = place_of(lease->pinned_by, process);
    int other = pop(&lease->pinned_by);
    if (other != process)
        *place = other;
    if (lease->pins == 2)
        lease->pinned_by = static_cast<uint32>(pop(&lease->pinned_by));
}

} // namespace

bool add_pinner(Lease* lease) {
    int process = number_of_process();
    if (lease->pins == 0)
        lease->pinned_by = static_cast<uint32>(process);
    else if (!add_to_list(lease, process))
        return false;
    lease->pins++;
    return true;
}

void remove_pinner(Lease* lease) {
    if (lease->pins > 1)
        remove_from_list(lease, number_of_process());
    lease->pins--;
}

Pinner pinner_of(int process) {
    return {GetPGProcByNumber(process)->pid, waiter_number(process + 1)->pinning_since};
}

} // namespace interlock
