#include "server/nearest.h"

namespace interlock::inline server {

// The server's function takes no longer names.
Nearest::Nearest(std::string_view name)
    : name_(name),
      limit_(name.empty() || name.size() >= NAMEDATALEN ? -1
             : name.size() < 3                          ? 0
                               : Min(3, static_cast<int>(name.size()) / 2)) {}

void Nearest::offer(const char* candidate) {
    std::string_view other = candidate;
    if (limit_ < 0 || other.size() >= NAMEDATALEN)
        return;
    int distance = 0;
    if (name_.size() != other.size() || pg_strncasecmp(name_.data(), candidate, name_.size()) != 0)
        distance =
            varstr_levenshtein_less_equal(name_.data(), static_cast<int>(name_.size()), candidate,
                                          static_cast<int>(other.size()), 1, 1, 1, limit_, true);
    if (distance > limit_)
        return;
    nearest_ = candidate;
    limit_ = distance - 1;
}

const char* Nearest::in_words() const {
    return nearest_ != nullptr ? psprintf("Perhaps \"%s\" is meant. ", nearest_) : "";
}

} // namespace interlock::inline server
