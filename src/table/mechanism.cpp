#include "table/mechanism.h"

#include "table/own_table.h"

namespace interlock::inline table {

char* SettingsPlan::statement(const char* function, const char* arguments) const {
    return psprintf("SELECT %s(%s%s%s);", own_function(function), quote_literal_cstr(table_),
                    arguments[0] != '\0' ? ", " : "", arguments);
}

} // namespace interlock::inline table
