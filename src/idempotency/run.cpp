// run_once: a command and the completion of its key in one transaction: both happen, or neither.

#include "idempotency/idempotency.h"
#include "server/arguments.h"
#include "server/named_function.h"
#include "server/result_row.h"

namespace interlock::idempotency {

namespace {

struct Command {
    FmgrInfo function;
    Oid result_type;
};

} // namespace

static Oid command_argument(const Arguments& arguments, int n);
static Command open_command(Oid oid);
static Command open_command_after_wait(Oid oid);
static NullableDatum run_command_once(Command* command, NullableDatum request);

extern "C" {
PG_FUNCTION_INFO_V1(run_once);

// run_once(scope, key, command, request, wait)
Datum run_once(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    Oid named = command_argument(arguments, 2);
    Command command = open_command(named);
    Jsonb* request = arguments.jsonb_or_null(3);
    ClaimRequest what = {hash_request(request), nullptr, nullptr, {0, true}};
    Claim claim = claim_key(key, what, Deadline::argument(arguments, 4));
    const char* outcome = outcome_name(claim.outcome);
    if (claim.outcome == ClaimOutcome::kAcquired) {
        command = open_command_after_wait(named);
        claim.response = run_command_once(&command, {JsonbPGetDatum(request), request == nullptr});
        (void)complete_key(key, claim.token, {claim.response, {0, true}, {0, true}});
        outcome = "completed";
    }
    Datum values[2] = {CStringGetTextDatum(outcome), claim.response.value};
    bool nulls[2] = {false, claim.response.isnull};
    return result_row(fcinfo, values, nulls);
}
}

constexpr const char* kCommandHint =
    "A command takes (request jsonb) and returns jsonb or void: name it as 'pay' or 'pay(jsonb)'.";

static Oid command_argument(const Arguments& arguments, int n) {
    return named_function(arguments.string(n, "command"), {JSONBOID}, kCommandHint);
}

static Command open_command(Oid oid) {
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("function with OID %u does not exist", oid)));
    auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    bool fits = form->prokind == PROKIND_FUNCTION && !form->proretset &&
                (form->prorettype == JSONBOID || form->prorettype == VOIDOID) &&
                form->pronargs == 1 && form->proargtypes.values[0] == JSONBOID;
    Command command = {};
    command.result_type = form->prorettype;
    ReleaseSysCache(tuple);
    if (!fits)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("function %s cannot be a command", format_procedure(oid)),
                        errhint("%s", kCommandHint)));
    AclResult allowed = check_function_privilege(oid, GetUserId());
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(oid));
    fmgr_info(oid, &command.function);
    return command;
}

// EXECUTE may have been revoked and the function dropped or replaced since: the caches may show it
// as it was, as nothing was locked that would have read them again.
static Command open_command_after_wait(Oid oid) {
    AcceptInvalidationMessages();
    return open_command(oid);
}

static NullableDatum run_command_once(Command* command, NullableDatum request) {
    LOCAL_FCINFO(call, 1);
    if (command->function.fn_strict && request.isnull)
        return {0, true};
    InitFunctionCallInfoData(*call, &command->function, 1, InvalidOid, nullptr, nullptr);
    call->args[0] = request;
    Datum result = FunctionCallInvoke(call);
    return {result, call->isnull || command->result_type == VOIDOID};
}

} // namespace interlock::idempotency
