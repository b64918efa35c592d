#include "history/context.h"

namespace interlock::history {

constexpr size_t kContextBytes = 8192;
static char* context_setting = nullptr;

// Without a subtransaction: there may be no transaction, and the input function holds nothing but
// memory when it raises an error.
static pg_noinline bool is_object(char* text, Datum* json) {
    MemoryContext context = CurrentMemoryContext;
    volatile bool reads = true;
    PG_TRY();
    { *json = DirectFunctionCall1(jsonb_in, CStringGetDatum(text)); }
    PG_CATCH();
    {
        int category = ERRCODE_TO_CATEGORY(geterrcode());
        if (category != ERRCODE_DATA_EXCEPTION && category != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
            PG_RE_THROW();
        MemoryContextSwitchTo(context);
        FlushErrorState();
        reads = false;
    }
    PG_END_TRY();
    return reads && JB_ROOT_IS_OBJECT(DatumGetJsonbP(*json));
}

static bool refuse(const char* rule) {
    GUC_check_errmsg("setting \"interlock.context\" %s", rule);
    GUC_check_errhint(
        "For example SET LOCAL interlock.context = '{\"user\": \"anna\", \"request\": 17}'. An "
        "empty string means no context.");
    return false;
}

// Files are read outside of transactions, also by the postmaster, where an error would stop the
// server. The other sources are read by sessions, some of them outside of a transaction. So nothing
// here needs one.
static bool check_context(char** value, void**, GucSource source) {
    if ((*value)[0] == '\0')
        return true;
    if (source < PGC_S_DATABASE)
        return refuse("cannot be set for a whole server");
    size_t length = strlen(*value);
    if (length > kContextBytes)
        return refuse("must not be longer than 8192 bytes");
    // The server does not verify the options with which a session starts.
    if (!pg_verifymbstr(*value, static_cast<int>(length), true))
        return refuse("must be valid in the encoding of the database");
    Datum json;
    if (!is_object(*value, &json))
        return refuse("must be a JSON object");
    if (VARSIZE_ANY(DatumGetPointer(json)) > kContextBytes)
        return refuse("must not need more than 8192 bytes as jsonb");
    // A number such as 1e100000 is short and prints long.
    JsonbContainer* root = &DatumGetJsonbP(json)->root;
    if (strlen(JsonbToCString(nullptr, root, VARSIZE_ANY(DatumGetPointer(json)))) > kContextBytes)
        return refuse("must not print as more than 8192 bytes");
    return true;
}

void define_context_setting() {
    DefineCustomStringVariable(
        "interlock.context", "Is stored with each history entry of the transaction.",
        "A JSON object of at most 8 kB, such as the request, the user and the job.",
        &context_setting, "", PGC_USERSET, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, check_context,
        nullptr, nullptr);
}

NullableDatum current_context() {
    if (context_setting[0] == '\0')
        return {0, true};
    return {DirectFunctionCall1(jsonb_in, CStringGetDatum(context_setting)), false};
}

} // namespace interlock::history
