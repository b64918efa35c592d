#include "history/notify.h"

#include "server/error.h"

namespace interlock::history {

constexpr const char* kChannel = "interlock_history";

namespace {

// The server drops what is sent twice in a transaction, but compares it with all the rest.
struct Sent {
    Oid root;
    LocalTransactionId transaction;
    SubTransactionId subtransaction;
};

} // namespace

static Sent sent = {};

static bool is_sent(Oid root) {
    Sent now = {root, local_transaction(), GetCurrentSubTransactionId()};
    bool same = now.root == sent.root && now.transaction == sent.transaction &&
                now.subtransaction == sent.subtransaction;
    sent = now;
    return same;
}

static char* key_text(Datum key) {
    Jsonb* json = DatumGetJsonbP(key);
    return JsonbToCString(nullptr, &json->root, static_cast<int>(VARSIZE(json)));
}

void notify_readers(const TableInfo* info, Datum key) {
    const History* history = history_of(info);
    bool is_full = history->notify == Notify::kFull;
    if (!is_full && is_sent(history->root))
        return;
    const char* table = qualified_name(history->root);
    if (!is_full) {
        Async_Notify(kChannel, json_object({{"table", table}}));
        return;
    }
    char* payload = json_object({{"table", table}, {"key", nullptr, key_text(key)}});
    if (strlen(payload) > kLongestPayload)
        payload = json_object({{"table", table}, {"key"}});
    Async_Notify(kChannel, payload);
}

} // namespace interlock::history
