#include "table/peek.h"

namespace interlock::inline table {

void warn_unseen(Oid relid, const char* purpose, int sqlstate, const char* why) {
    const char* name = get_rel_name(relid);
    if (name != nullptr)
        ereport(WARNING, (errcode(sqlstate), errmsg("could not %s of \"%s\"", purpose, name),
                          errdetail("%s", why)));
}

} // namespace interlock::inline table
