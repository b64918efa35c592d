#include "table/name.h"

#include "table/citus.h"

namespace interlock::inline table {

// The relation's own name is stale where a subtransaction that renamed it was rolled back.
char* qualified_name(Relation rel) { return qualified_name(RelationGetRelid(rel)); }

char* qualified_name(Oid relid) {
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
                                      get_rel_name(relid));
}

char* shown_name(Relation rel) { return qualified_name(table_of_shard(RelationGetRelid(rel))); }

char* typed_name(Relation rel) {
    return rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP
               ? quote_qualified_identifier("pg_temp", get_rel_name(RelationGetRelid(rel)))
               : qualified_name(rel);
}

char* call_for(const char* function, Relation rel) {
    return psprintf("SELECT interlock.%s(%s);", function, quote_literal_cstr(typed_name(rel)));
}

char* operator_text(Oid operator_oid) {
    HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator_oid));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for operator %u", operator_oid);
    auto* form = reinterpret_cast<Form_pg_operator>(GETSTRUCT(tuple));
    char* text =
        psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
                 NameStr(form->oprname));
    ReleaseSysCache(tuple);
    return text;
}

const char* enum_cast(Oid type) {
    Oid base = getBaseType(type);
    if (base == type || !type_is_enum(base))
        return "";
    return psprintf("::%s", format_type_be_qualified(base));
}

char* rows_of(Relation rel) {
    bool is_partitioned = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
    return psprintf("%s%s", is_partitioned ? "" : "ONLY ", qualified_name(rel));
}

Oid root_of(Relation rel) {
    Oid relid = RelationGetRelid(rel);
    if (!rel->rd_rel->relispartition)
        return relid;
    List* ancestors = get_partition_ancestors(relid);
    return ancestors != NIL ? llast_oid(ancestors) : relid;
}

template <typename Row>
static Oid owner_of(CatalogCache cache, Oid object, Oid Row::*owner) {
    HeapTuple tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
    if (!HeapTupleIsValid(tuple))
        return InvalidOid;
    Oid role = reinterpret_cast<Row*>(GETSTRUCT(tuple))->*owner;
    ReleaseSysCache(tuple);
    return role;
}

Oid owner_of_table(Oid relid) { return owner_of(RELOID, relid, &FormData_pg_class::relowner); }

Oid owner_of_function(Oid function) {
    return owner_of(PROCOID, function, &FormData_pg_proc::proowner);
}

Oid owner_of_schema(Oid schema) {
    return owner_of(NAMESPACEOID, schema, &FormData_pg_namespace::nspowner);
}

} // namespace interlock::inline table
