/* Functions that do nothing: what a call costs by itself. */
#include <postgres.h>

#include <fmgr.h>

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(empty);

Datum empty(PG_FUNCTION_ARGS) { PG_RETURN_VOID(); }
