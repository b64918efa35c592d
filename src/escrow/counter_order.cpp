#include "escrow/counter_order.h"

namespace interlock::escrow {

static std::string_view view_of(const text* key) {
    return {VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)};
}

int compare_counters(const EscrowCounter& left, const EscrowCounter& right) {
    if (left.name.rel != right.name.rel)
        return left.name.rel < right.name.rel ? -1 : 1;
    if (left.column->attnum != right.column->attnum)
        return left.column->attnum - right.column->attnum;
    return view_of(left.name.key).compare(view_of(right.name.key));
}

} // namespace interlock::escrow
