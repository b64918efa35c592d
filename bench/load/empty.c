/* Functions that do nothing: what a call, and a trigger BEFORE UPDATE, cost by themselves. */
#include <postgres.h>

#include <commands/trigger.h>
#include <fmgr.h>

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(empty);
PG_FUNCTION_INFO_V1(empty_trigger);

Datum empty(PG_FUNCTION_ARGS) { PG_RETURN_VOID(); }

Datum empty_trigger(PG_FUNCTION_ARGS) { return PointerGetDatum(((TriggerData *)fcinfo->context)->tg_newtuple); }
