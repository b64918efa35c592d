#include "lease/key.h"

namespace interlock::lease {

int count_levels(const char* bytes, size_t length) {
    int levels = 0;
    for (size_t start = 0, end = 0; end < length; start = end + 1) {
        end = end_of_level(bytes, length, start);
        if (end == start)
            return 0;
        levels++;
    }
    return levels;
}

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

} // namespace interlock::lease
