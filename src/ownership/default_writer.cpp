#include "ownership/default_writer.h"

#include "table/column.h"
#include "table/own_table.h"

namespace interlock::ownership {

namespace {

struct Known {
    Oid user;
    bool has_writer;
    char writer[kWriterBytes + 1];
};

} // namespace

constexpr int kMostKnown = 8;
static Known known[kMostKnown];
static int known_count = 0;
static int next_known = 0;        // the one to be replaced when there are as many
static Oid known_of = InvalidOid; // the table that they were read from
static uint64 changes = 0;

static void forget() {
    known_count = next_known = 0;
    changes++;
}

static void note_table_change(Datum, Oid relid) {
    if (relid == InvalidOid || relid == known_of)
        forget();
}

static void note_role_change(Datum, CatalogCache, uint32) { forget(); }

static void watch_changes() {
    static bool watches = false;
    if (watches)
        return;
    CacheRegisterRelcacheCallback(note_table_change, 0);
    CacheRegisterSyscacheCallback(AUTHOID, note_role_change, 0);
    watches = true;
}

// Under any name of the schema: protection continues without the extension's statements.
static Oid grants() {
    Oid schema = own_schema();
    return OidIsValid(schema) ? get_relname_relid("writer_grant", schema) : InvalidOid;
}

// A text column of a row; null when the value or the column is not there.
static char* text_of(HeapTuple row, TupleDesc columns, const char* name) {
    AttrNumber column = find_attribute(columns, name);
    bool is_null = true;
    Datum value = column == InvalidAttrNumber ? 0 : heap_getattr(row, column, columns, &is_null);
    return is_null ? nullptr : TextDatumGetCString(value);
}

static bool is_default(HeapTuple row, TupleDesc columns) {
    AttrNumber column = find_attribute(columns, "is_default");
    bool is_null = true;
    Datum value = column == InvalidAttrNumber ? 0 : heap_getattr(row, column, columns, &is_null);
    return !is_null && DatumGetBool(value);
}

static Known* find_known(Oid user) {
    for (int i = 0; i < known_count; i++)
        if (known[i].user == user)
            return &known[i];
    return nullptr;
}

static Known* add_known(Oid user) {
    Known* entry = &known[next_known];
    next_known = (next_known + 1) % kMostKnown;
    known_count = Max(known_count, next_known == 0 ? kMostKnown : next_known);
    entry->user = user;
    entry->has_writer = false;
    return entry;
}

// By the newest state of the table: a transaction with an older snapshot must not leave what it
// finds to the next one.
const char* stored_default_writer(const char* role) {
    Oid table = grants();
    if (!OidIsValid(table))
        return nullptr;
    Relation rel = table_open(table, AccessShareLock);
    SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, nullptr, 0, nullptr);
    TupleDesc columns = RelationGetDescr(rel);
    const char* writer = nullptr;
    HeapTuple row;
    while (writer == nullptr && HeapTupleIsValid(row = systable_getnext(scan))) {
        if (!is_default(row, columns))
            continue;
        const char* name = text_of(row, columns, "role_name");
        if (name != nullptr && strcmp(name, role) == 0)
            writer = text_of(row, columns, "writer");
    }
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return writer;
}

const char* default_writer(Oid user) {
    Known* found = find_known(user);
    if (found == nullptr) {
        watch_changes();
        uint64 before = changes;
        known_of = grants();
        const char* role = GetUserNameFromId(user, true);
        const char* writer = role == nullptr ? nullptr : stored_default_writer(role);
        found = add_known(user);
        if (writer != nullptr) {
            found->has_writer = true;
            strlcpy(found->writer, writer, sizeof(found->writer));
        }
        if (changes != before) // for this once
            known_count = next_known = 0;
    }
    return found->has_writer ? found->writer : nullptr;
}

void forget_default_writers() {
    Oid table = grants();
    if (OidIsValid(table))
        CacheInvalidateRelcacheByRelid(table);
}

} // namespace interlock::ownership
