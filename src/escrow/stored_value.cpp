#include "escrow/stored_value.h"

#include "server/scope.h"
#include "table/name.h"
#include "table/plan.h"

namespace interlock::escrow {

bool read_stored_value(const EscrowCounter& counter, int64* value) {
    const TableInfo* info = counter.row.info;
    const Key& key = *counter.row.key;
    bool is_null = true;
    with_spi([&] {
        Statement statement;
        statement.add("SELECT %s FROM %s t WHERE ", quote_identifier(NameStr(counter.column->name)),
                      rows_of(counter.row.rel));
        add_key_condition(&statement, info, key);
        Parameters parameters(key.by->count);
        add_key(&parameters, key);
        if (SPI_execute_with_args(statement.text(), statement.parameter_count(), statement.types(),
                                  parameters.values(), parameters.nulls(), true,
                                  1) != SPI_OK_SELECT)
            elog(ERROR, "could not read an escrow counter");
        if (SPI_processed != 1)
            return;
        Datum stored = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
        if (!is_null)
            *value = amount_of(*counter.column, stored);
    });
    return !is_null;
}

} // namespace interlock::escrow
