#include "table/mechanism.h"

#include "lease/key.h"
#include "lease/require.h"
#include "table/settings_json.h"

namespace interlock::lease {

static size_t count_columns(const char* text) {
    size_t count = 0;
    for (const char* at = text; (at = strchr(at, '{')) != nullptr; at++)
        if (at[1] == '{')
            at++;
        else
            count++;
    return count;
}

// A piece takes much more memory than its text, and any role can make one as long as an argument
// can be. Each column adds a byte to the key at least.
LeaseTemplate parse_template(const char* text) {
    constexpr size_t kMostBytes = kMaxLeaseKeyBytes * (NAMEDATALEN + 2);
    size_t columns = count_columns(text);
    if (strlen(text) > kMostBytes || columns > kMaxLeaseKeyBytes)
        return {};
    LeaseTemplate result = {
        static_cast<TemplatePiece*>(palloc0(sizeof(TemplatePiece) * (columns + 1))), 0};
    StringInfoData literal;
    initStringInfo(&literal);
    for (const char* at = text;; at++) {
        bool is_brace = *at == '{' || *at == '}';
        if (is_brace && at[1] == *at)
            at++;
        else if (*at == '}')
            return {};
        else if (is_brace || *at == '\0') {
            TemplatePiece* piece = &result.pieces[result.count++];
            piece->text = pstrdup(literal.data);
            resetStringInfo(&literal);
            if (*at == '\0')
                return result;
            size_t length = strcspn(at + 1, "{}");
            if (length == 0 || at[1 + length] != '}')
                return {};
            piece->name = pnstrdup(at + 1, length);
            at += 1 + length;
            continue;
        }
        appendStringInfoChar(&literal, *at);
    }
}

StringInfoData sample_key(const LeaseTemplate& pieces) {
    StringInfoData key;
    initStringInfo(&key);
    for (int i = 0; i < pieces.count; i++) {
        appendStringInfoString(&key, pieces.pieces[i].text);
        if (pieces.pieces[i].name != nullptr)
            appendStringInfoChar(&key, '*');
    }
    return key;
}

bool read_settings(const Trigger* trigger, LeaseSettings* settings) {
    if (argument_count(trigger) == 0)
        return false;
    settings->key = pstrdup(trigger->tgargs[0]);
    settings->pieces = parse_template(settings->key);
    settings->columns = arguments_from(trigger, 1);
    StringInfoData sample = sample_key(settings->pieces);
    int levels = count_levels(sample.data, sample.len);
    return levels > 0 && levels <= kMaxLeaseLevels &&
           sample.len <= static_cast<int>(kMaxLeaseKeyBytes);
}

List* trigger_arguments(const LeaseSettings& settings) {
    return add_names(add_argument(NIL, settings.key), settings.columns);
}

static Reading read(Oid, const Trigger* trigger, Setting* setting) {
    LeaseSettings settings;
    if (!read_settings(trigger, &settings))
        return Reading::kForged;
    const NameList& columns = settings.columns;
    JsonObject arguments;
    arguments.add("columns",
                  columns.count > 0 ? json_texts(columns.names, columns.count) : nullptr);
    setting->key = settings.key;
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

extern const Mechanism kLeaseMechanism = {
    .name = "require_lease",
    .enable = "require_lease",
    .disable = "unrequire_lease",
    .key = "key",
    .read = read,
};

} // namespace interlock::lease
