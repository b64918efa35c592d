// CREATE EXTENSION into a schema that is there already.
//
// The server creates the schema when there is none, else it takes the one it finds, whoever made
// it. Tools that load a schema file make schemas before extensions, so one that the installing
// administrator or another superuser owns is taken; it must be empty, since what others put there
// could be called in place of what the extension creates.

#include "table/own_table.h"
#include "table/plan.h"

using namespace interlock;

namespace {

[[noreturn]] void refuse_schema(const char* detail) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("schema \"%s\" cannot be used for the extension", kOwnSchema),
                    errdetail_internal("%s", detail),
                    errhint("Drop the schema or rename it; CREATE EXTENSION creates it.")));
}

// Refuses with the first row of a query for one text, if it has any.
void refuse_if_any(const char* format, const char* query) {
    run_command(query);
    if (SPI_processed > 0)
        refuse_schema(
            psprintf(format, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1)));
}

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(check_schema);

// Called once, by the script of CREATE EXTENSION, and dropped there.
Datum check_schema(PG_FUNCTION_ARGS) {
    Oid schema = get_namespace_oid(kOwnSchema, false);
    Oid owner = owner_of_schema(schema);
    if (owner != GetUserId() && !superuser_arg(owner))
        refuse_schema(
            psprintf("Its owner \"%s\" is not a superuser.", GetUserNameFromId(owner, false)));
    with_spi([&] {
        refuse_if_any("Role \"%s\" may create objects in it.",
                      psprintf("SELECT COALESCE(r.rolname, 'public') FROM pg_catalog.pg_namespace "
                               "n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a LEFT JOIN "
                               "pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) a.grantee "
                               "WHERE n.oid OPERATOR(pg_catalog.=) %u AND a.grantee "
                               "OPERATOR(pg_catalog.<>) n.nspowner AND a.privilege_type "
                               "OPERATOR(pg_catalog.=) 'CREATE' ORDER BY 1 LIMIT 1",
                               schema));
        refuse_if_any(
            "It contains %s.",
            psprintf("SELECT o.type OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) o.identity "
                     "FROM pg_catalog.pg_depend d CROSS JOIN LATERAL "
                     "pg_catalog.pg_identify_object(d.classid, d.objid, 0) o "
                     "WHERE d.refclassid OPERATOR(pg_catalog.=) "
                     "'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.refobjid "
                     "OPERATOR(pg_catalog.=) %u AND NOT (d.classid "
                     "OPERATOR(pg_catalog.=) "
                     "'pg_catalog.pg_extension'::pg_catalog.regclass AND d.objid "
                     "OPERATOR(pg_catalog.=) %u) AND NOT (d.classid "
                     "OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass "
                     "AND d.objid OPERATOR(pg_catalog.=) %u) ORDER BY d.classid, "
                     "d.objid LIMIT 1",
                     schema, get_extension_oid("pg_interlock", false), fcinfo->flinfo->fn_oid));
    });
    PG_RETURN_VOID();
}
}
