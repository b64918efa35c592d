#include "lease/beside.h"

namespace interlock {

int compare_keys(const LeaseKey& left, const LeaseKey& right) {
    auto rank = [](char byte) { return byte == '/' ? 0 : static_cast<unsigned char>(byte) + 1; };
    for (size_t i = 0; i < Min(left.length, right.length); i++)
        if (left.bytes[i] != right.bytes[i])
            return rank(left.bytes[i]) - rank(right.bytes[i]);
    return (left.length > right.length) - (left.length < right.length);
}

bool is_ancestor(const LeaseKey& key, const LeaseKey& other) {
    return key.length < other.length && other.bytes[key.length] == '/' &&
           memcmp(key.bytes, other.bytes, key.length) == 0;
}

bool are_related(const LeaseKey& key, const LeaseKey& other) {
    return compare_keys(key, other) == 0 || is_ancestor(key, other) || is_ancestor(other, key);
}

namespace {

// None of the call's keys is below another. So the one above a key, if there is one, is the last
// before it; one at it or below it is the first from there on.
bool is_related(const LeaseKey& key, const LeaseRequest* requests, int count) {
    int from = 0;
    for (int to = count; from < to;) {
        int middle = (from + to) / 2;
        if (compare_keys(requests[middle].key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return (from > 0 && are_related(key, requests[from - 1].key)) ||
           (from < count && are_related(key, requests[from].key));
}

bool waits_for_call(const LeaseWaiter& waiter, const LeaseRequest& request) {
    LeaseMode mode = lease_at(waiter.claim.lease)->mode;
    if (mode != LeaseMode::kExclusive && request.mode != LeaseMode::kExclusive)
        return false;
    KeyRoom room;
    return is_related(key_of(*node_at(waiter.claim.node), room), request.beside,
                      request.beside_count);
}

} // namespace

void stand_before_waiting_for_call(LeaseWaiter* waiter, const LeaseRequest& request) {
    uint32 look = next_look(request.key.partition);
    LeaseWaiter* next;
    for (LeaseWaiter* other = first_in_queue(waiter->claim.node); other != waiter; other = next) {
        next = waiter_number(other->next);
        LeaseMode mode = lease_at(other->claim.lease)->mode;
        if (!is_behind(other->claim.node, mode, look) && !waits_for_call(*other, request))
            continue;
        pass_over(other->claim.node, mode, look);
        move_to_end_of_queue(other);
    }
}

} // namespace interlock
