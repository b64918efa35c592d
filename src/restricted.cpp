#include "restricted.h"

namespace interlock {

void close_new_cursors() {
    SubTransactionId here = GetCurrentSubTransactionId();
    with_spi([&] {
        if (SPI_execute("SELECT name FROM pg_catalog.pg_cursor()", true, 0) < 0)
            elog(ERROR, "could not list cursors");
        for (uint64 i = 0; i < SPI_processed; i++) {
            Portal portal =
                SPI_cursor_find(SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
            if (portal != nullptr && portal->createSubid == here)
                SPI_cursor_close(portal);
        }
    });
}

} // namespace interlock
