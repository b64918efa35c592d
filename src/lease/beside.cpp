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

// The last key before the claim's shares the longest path with it.
bool waits_above_both(const LeaseWaiter& waiter, const LeaseRequest& request) {
    KeyRoom room;
    LeaseKey key = key_of(*node_at(waiter.claim.node), room);
    return is_ancestor(key, request.key) &&
           is_ancestor(key, request.beside[request.beside_count - 1].key);
}

} // namespace

void stand_before_those_above(LeaseWaiter* waiter, const LeaseRequest& request) {
    uint32 look = next_look(request.key.partition);
    LeaseWaiter* next;
    for (LeaseWaiter* other = first_in_queue(waiter->claim.node); other != waiter; other = next) {
        next = waiter_number(other->next);
        LeaseMode mode = lease_at(other->claim.lease)->mode;
        if (!is_behind(other->claim.node, mode, look) && !waits_above_both(*other, request))
            continue;
        pass_over(other->claim.node, mode, look);
        move_to_end_of_queue(other);
    }
}

} // namespace interlock
