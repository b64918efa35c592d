#include "escrow/notify.h"

#include "server/error.h"

namespace interlock::escrow {

// The server drops what is sent twice in a transaction. A full queue of notifications must not fail
// the call that returns stock.
void notify_of_return(const KeyedRow& row, const EscrowColumn& counted) {
    constexpr double kMostUsed = 0.9;
    if (counted.notify == Notify::kOff || !has_room_for_notifications(kMostUsed))
        return;
    const char* table = qualified_name(row.rel);
    const char* column = NameStr(counted.name);
    char* payload = json_object({{"table", table}, {"column", column}});
    if (counted.notify == Notify::kFull) {
        const char* key = key_to_text(row.info, *row.key);
        payload = json_object({{"table", table}, {"key", nullptr, key}, {"column", column}});
        if (strlen(payload) > kLongestPayload)
            payload = json_object({{"table", table}, {"key"}, {"column", column}});
    }
    Async_Notify("interlock_escrow", payload);
}

} // namespace interlock::escrow
