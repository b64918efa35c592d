#include "lease/argument.h"

#include "lease/database.h"

namespace interlock::lease {

const char* default_holder(size_t* length) {
    const char* holder = application_name;
    if (holder == nullptr || holder[0] == '\0')
        holder = psprintf("process %d", MyProcPid);
    *length = strnlen(holder, kMaxHolderBytes); // all ASCII: to be cut anywhere
    return holder;
}

LeaseKey lease_key_argument(const text* key, int element) {
    const char* bytes = VARDATA_ANY(key);
    size_t length = VARSIZE_ANY_EXHDR(key);
    int levels = count_levels(bytes, length);
    if (length == 0)
        refuse_empty(name_of_key(element));
    if (length > kMaxLeaseKeyBytes)
        refuse_long(name_of_key(element), kMaxLeaseKeyBytes,
                    "Give a digest of it, for example md5(key).");
    if (levels == 0)
        refuse_argument(name_of_key(element), "must not have an empty level",
                        psprintf("A slash separates levels. As one level: interlock.key_path(%s).",
                                 quote_literal_cstr(text_to_cstring(key))));
    if (levels > kMaxLeaseLevels)
        refuse_argument(name_of_key(element),
                        psprintf("must not have more than %d levels", kMaxLeaseLevels));
    return lease_key(MyDatabaseId, bytes, length);
}

void check_lease_count(int keys, const char* function) {
    constexpr int kMostKeys = 10000; // their partitions are locked while the call works
    if (keys > kMostKeys)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("%d keys are too many for one call of %s()", keys, function),
                        errhint("It takes at most %d. The lease of a path covers what is below it.",
                                kMostKeys)));
}

int64 ttl_argument(const Arguments& arguments, int n) {
    int64 ttl = duration_argument(arguments.interval(n, "ttl"), "ttl",
                                  "For example '30 s', or 30 for seconds.");
    if (ttl > max_lease_ttl * USECS_PER_SEC)
        refuse_argument(
            "ttl", psprintf("must not be longer than interlock.max_lease_ttl, %d s", max_lease_ttl),
            "Renew a shorter lease, or bind it to the session.");
    return ttl;
}

int64 at_least_argument(const Arguments& arguments, int n, int64 ttl) {
    if (arguments.is_null(n))
        return 0;
    int64 length = duration_or_zero_argument(arguments.interval(n, "at_least"), "at_least",
                                             "Zero frees the lease when it is released.");
    if (length > ttl)
        refuse_argument("at_least", "must not be longer than ttl");
    return length;
}

void refuse_at_least_of_session() {
    refuse_argument("at_least", "needs a lease with a ttl",
                    "A lease that is bound to the session ends with it.");
}

const char* holder_argument(const Arguments& arguments, int n, size_t* length) {
    if (arguments.is_null(n))
        return default_holder(length);
    const text* holder = DatumGetTextPP(arguments.value(n));
    *length = VARSIZE_ANY_EXHDR(holder);
    if (*length == 0)
        refuse_empty("holder");
    if (*length > kMaxHolderBytes)
        refuse_long("holder", kMaxHolderBytes);
    return VARDATA_ANY(holder);
}

LeaseMode lease_mode_argument(const Arguments& arguments, int n) {
    std::string_view mode = arguments.view(n, "mode");
    if (mode == "exclusive")
        return LeaseMode::kExclusive;
    if (mode == "shared")
        return LeaseMode::kShared;
    refuse_value("mode", mode, "Use 'exclusive' or 'shared'.");
}

LeaseBond lease_bond_argument(const Arguments& arguments, int n) {
    std::string_view bind = arguments.view(n, "bind");
    if (bind == "ttl")
        return LeaseBond::kTtl;
    if (bind == "session")
        return LeaseBond::kSession;
    refuse_value(
        "bind", bind,
        "Use 'ttl' or 'session'. interlock.lock_key locks a key until the transaction ends.");
}

} // namespace interlock::lease
