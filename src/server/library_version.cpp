#include "server/library_version.h"

namespace interlock::inline server {

constexpr int64 kLibraryNumber = version_number(kLibraryVersion);
static_assert(kLibraryNumber > 0, "a version is three numbers");
static_assert(version_number(kOldestSql) > 0 && version_number(kOldestSql) <= kLibraryNumber);
static_assert(version_number("0.10.0") > version_number("0.9.12"));
static_assert(version_number("0.9") == 0 && version_number("0.9.") == 0);
static_assert(version_number("0.9.0.1") == 0 && version_number("0.9.x") == 0);

constexpr int64 kPatches = 1000000;

static char warned_of[NAMEDATALEN] = "";

static char* version_in(HeapTuple extension, Relation catalog) {
    bool is_null;
    Datum version =
        heap_getattr(extension, Anum_pg_extension_extversion, RelationGetDescr(catalog), &is_null);
    return is_null ? pstrdup("") : TextDatumGetCString(version);
}

Fit fit_of(const char* sql) {
    if (strcmp(sql, kLibraryVersion) == 0)
        return Fit::same;
    int64 number = version_number(sql);
    bool works = number <= kLibraryNumber ? number >= version_number(kOldestSql)
                                          : number / kPatches == kLibraryNumber / kPatches;
    return works ? Fit::works : Fit::fails;
}

ExtensionRow extension_row() {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
                CStringGetDatum("pg_interlock"));
    Relation catalog = table_open(ExtensionRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    ExtensionRow row = {};
    if (HeapTupleIsValid(tuple)) {
        auto* form = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
        row = {form->oid, form->extnamespace, version_in(tuple, catalog)};
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return row;
}

char* describe_versions(const char* sql) {
    const char* database = get_database_name(MyDatabaseId);
    return psprintf(
        "the pg_interlock library is version %s, and its SQL in database \"%s\" is "
        "version %s",
        kLibraryVersion, database != nullptr ? database : "", sql);
}

char* advise_on_versions(const char* sql) {
    if (version_number(sql) <= kLibraryNumber)
        return pstrdup("ALTER EXTENSION pg_interlock UPDATE;");
    return psprintf(
        "Install the library of version %s and restart the server; without "
        "preload it is enough to reconnect.",
        sql);
}

void require_version(const char* sql) {
    Fit fit = fit_of(sql);
    if (fit == Fit::same || creating_extension || IsBinaryUpgrade)
        return;
    if (fit == Fit::fails)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg_internal("%s", describe_versions(sql)),
                        errhint("%s", advise_on_versions(sql))));
    // Workers are many and live for a moment; that of the sweeper logs it itself.
    if (strncmp(sql, warned_of, sizeof warned_of - 1) == 0 || MyBackendType == B_BG_WORKER)
        return;
    strlcpy(warned_of, sql, sizeof warned_of);
    ereport(WARNING, (errmsg_internal("%s", describe_versions(sql)),
                      errhint("%s", advise_on_versions(sql))));
}

void refuse_second_library(const char* version) {
    if (version != nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("version %s of the pg_interlock library is loaded already, from another "
                        "file",
                        version),
                 errdetail("This file is of version %s.", kLibraryVersion),
                 errhint("Remove one of the files, or let shared_preload_libraries name that of "
                         "the extension. See dynamic_library_path.")));
}

} // namespace interlock::inline server
