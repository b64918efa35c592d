// Checks of CREATE EXTENSION and of scripts that upgrade; the versions of both.
//
// CREATE EXTENSION into a schema that is there already:
//
// The server creates the schema when there is none, else it uses the existing one, of any owner.
// Tools that load a schema file create schemas before extensions, so a schema of the installing
// administrator or of another superuser is accepted. It must be empty, since objects of others in
// it could be called in place of those of the extension.
//
// The script creates interlock_internal itself, and fails if it is there. Default privileges of the
// installing role can let others create objects in either.

#include "server/arguments.h"
#include "server/library_version.h"
#include "server/result_row.h"
#include "table/own_table.h"
#include "table/plan.h"

namespace interlock::install {

constexpr const char* kDropSchema = "Drop the schema or rename it; CREATE EXTENSION creates it.";

[[noreturn]] static void refuse_schema(const char* schema, const char* detail, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("schema \"%s\" cannot be used for the extension", schema),
                    errdetail_internal("%s", detail), errhint("%s", hint)));
}

// The first row of a query for one text, null if it has none.
static const char* first_row(const char* query) {
    run_command(query);
    return SPI_processed == 0 ? nullptr
                              : SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

static void refuse_creators(const char* name, Oid schema, const char* hint) {
    const char* role =
        first_row(psprintf("SELECT COALESCE(r.rolname, 'public') FROM pg_catalog.pg_namespace "
                           "n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a LEFT JOIN "
                           "pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) a.grantee "
                           "WHERE n.oid OPERATOR(pg_catalog.=) %u AND a.grantee "
                           "OPERATOR(pg_catalog.<>) n.nspowner AND a.privilege_type "
                           "OPERATOR(pg_catalog.=) 'CREATE' ORDER BY 1 LIMIT 1",
                           schema));
    if (role != nullptr)
        refuse_schema(name, psprintf("Role \"%s\" may create objects in it.", role), hint);
}

static void refuse_contents(const char* name, Oid schema) {
    const char* object = first_row(
        psprintf("SELECT o.type OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) o.identity "
                 "FROM pg_catalog.pg_depend d CROSS JOIN LATERAL "
                 "pg_catalog.pg_identify_object(d.classid, d.objid, 0) o "
                 "WHERE d.refclassid OPERATOR(pg_catalog.=) "
                 "'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.refobjid "
                 "OPERATOR(pg_catalog.=) %u AND NOT (d.classid "
                 "OPERATOR(pg_catalog.=) "
                 "'pg_catalog.pg_extension'::pg_catalog.regclass AND d.objid "
                 "OPERATOR(pg_catalog.=) %u) ORDER BY d.classid, d.objid LIMIT 1",
                 schema, get_extension_oid("pg_interlock", false)));
    if (object != nullptr)
        refuse_schema(name, psprintf("It contains %s.", object), kDropSchema);
}

extern "C" {
PG_FUNCTION_INFO_V1(check_schemas);

// Called once, by the script of CREATE EXTENSION, and dropped there.
Datum check_schemas([[maybe_unused]] PG_FUNCTION_ARGS) {
    Oid schema = get_namespace_oid(kOwnSchema, false);
    Oid owner = owner_of_schema(schema);
    if (owner != GetUserId() && !superuser_arg(owner))
        refuse_schema(
            kOwnSchema,
            psprintf("Its owner \"%s\" is not a superuser.", GetUserNameFromId(owner, false)),
            kDropSchema);
    with_spi([&] {
        refuse_creators(kOwnSchema, schema, kDropSchema);
        refuse_contents(kOwnSchema, schema);
        refuse_creators(kInternalSchema, get_namespace_oid(kInternalSchema, false),
                        "ALTER DEFAULT PRIVILEGES REVOKE CREATE ON SCHEMAS FROM that role.");
    });
    PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(interlock_version);

// library, sql
Datum interlock_version(PG_FUNCTION_ARGS) {
    char* sql = extension_row().version;
    Datum values[2] = {CStringGetTextDatum(kLibraryVersion),
                       sql != nullptr ? CStringGetTextDatum(sql) : 0};
    bool nulls[2] = {false, sql == nullptr};
    return result_row(fcinfo, values, nulls);
}

PG_FUNCTION_INFO_V1(require_library);

// The first statement of each script that upgrades: a preloaded library stays as it is until the
// server restarts, and one that a session has loaded as long as the session does.
Datum require_library(PG_FUNCTION_ARGS) {
    char* version = Arguments(fcinfo).string(0, "version");
    if (version_number(version) == 0)
        refuse_argument("version", "must be three numbers", "For example '0.9.0'.");
    if (version_number(version) > version_number(kLibraryVersion))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("version %s of the pg_interlock library is needed, and version %s "
                               "is loaded",
                               version, kLibraryVersion),
                        errhint("%s", advise_on_versions(version))));
    PG_RETURN_VOID();
}
}

} // namespace interlock::install
