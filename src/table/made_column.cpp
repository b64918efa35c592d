#include "table/made_column.h"

namespace interlock::inline table {

// Under which only equal bytes are equal.
static bool is_plain_collation(Oid collation) {
    return !OidIsValid(collation) || collation == C_COLLATION_OID ||
           collation == DEFAULT_COLLATION_OID;
}

bool is_unmodified(const MadeColumn& column, Form_pg_attribute attribute) {
    return !attribute->attisdropped && attribute->atttypid == column.type &&
           attribute->atttypmod < 0 && is_plain_collation(attribute->attcollation) &&
           (attribute->attnotnull || !column.required) &&
           attribute->attidentity == column.identity && attribute->attgenerated == '\0' &&
           strcmp(NameStr(attribute->attname), column.name) == 0;
}

} // namespace interlock::inline table
