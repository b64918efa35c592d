// Names, from an argument of type name[] or from the arguments of a trigger.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct NameList {
    const char* const* names;
    int count;
    const char* operator[](int i) const { return names[i]; }
    const char* const* begin() const { return names; }
    const char* const* end() const { return names + count; }
};

inline bool has_name(const NameList& list, const char* name) {
    for (const char* each : list)
        if (strcmp(each, name) == 0)
            return true;
    return false;
}

} // namespace interlock::inline server
