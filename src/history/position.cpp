#include "history/position.h"

#include "server/arguments.h"

namespace interlock::history {

constexpr const char* kArgument = "since";

[[noreturn]] static void refuse_text() {
    refuse_argument(kArgument, "is not a position of this function",
                    "Give what column up_to or history_position() has returned.");
}

// Reads a number and the character behind it.
static uint64 read_number(const char** at, char end) {
    if (**at < '0' || **at > '9')
        refuse_text();
    errno = 0;
    char* rest;
    uint64 number = strtoull(*at, &rest, 10);
    if (errno != 0 || *rest != end || number > PG_INT64_MAX)
        refuse_text();
    *at = end == '\0' ? rest : rest + 1;
    return number;
}

// Numbers of running transactions, up to `end`.
static Datum read_running(const char** at, char end, const SeenTransactions& seen) {
    ArrayBuildState* numbers = initArrayResult(INT8OID, CurrentMemoryContext, false);
    while (**at != end) {
        size_t length = strspn(*at, "0123456789");
        char after = (*at)[length];
        if (after != ',' && after != end)
            refuse_text();
        const char* number = *at;
        uint64 running = read_number(&number, after);
        if (running < seen.xmin || running >= seen.xmax)
            refuse_text();
        accumArrayResult(numbers, Int64GetDatum(static_cast<int64>(running)), false, INT8OID,
                         CurrentMemoryContext);
        *at = after == ',' ? number : *at + length;
        if (after == ',' && **at == end)
            refuse_text();
    }
    return makeArrayResult(numbers, CurrentMemoryContext);
}

static SeenTransactions read_seen(const char** at, char end) {
    SeenTransactions seen = {};
    seen.xmin = read_number(at, ':');
    seen.xmax = read_number(at, ':');
    if (seen.xmin == 0 || seen.xmin > seen.xmax)
        refuse_text();
    seen.running = read_running(at, end, seen);
    if (end != '\0')
        (*at)++;
    uint64 next = U64FromFullTransactionId(ReadNextFullTransactionId());
    if (seen.xmax > next)
        refuse_argument(
            kArgument, "is a position of another server, or of a later time",
            "Transactions are numbered by the server. After a restore begin again, with "
            "history_position() or null.");
    return seen;
}

static void print_seen(StringInfo text, const SeenTransactions& seen) {
    appendStringInfo(text, UINT64_FORMAT ":" UINT64_FORMAT ":", seen.xmin, seen.xmax);
    Datum* numbers;
    int count;
    deconstruct_array(DatumGetArrayTypeP(seen.running), INT8OID, sizeof(int64), true,
                      TYPALIGN_DOUBLE, &numbers, nullptr, &count);
    for (int i = 0; i < count; i++)
        appendStringInfo(text, "%s" INT64_FORMAT, i > 0 ? "," : "", DatumGetInt64(numbers[i]));
}

// The number with its epoch, of a transaction that is not after `next`.
static uint64 full_number(TransactionId transaction, FullTransactionId next) {
    uint64 epoch = EpochFromFullTransactionId(next);
    if (transaction > XidFromFullTransactionId(next))
        epoch--;
    return (epoch << 32) | transaction;
}

static int compare_numbers(const void* left, const void* right) {
    auto a = *static_cast<const int64*>(left);
    auto b = *static_cast<const int64*>(right);
    return a < b ? -1 : a > b ? 1 : 0;
}

Position parse_position(const char* text) {
    Position position = {};
    position.is_inside = strchr(text, ';') != nullptr;
    const char* at = text;
    position.seen = read_seen(&at, position.is_inside ? ';' : '\0');
    if (position.is_inside) {
        position.reading = read_seen(&at, ';');
        position.id = static_cast<int64>(read_number(&at, '\0'));
    }
    return position;
}

char* print_position(const Position& position) {
    StringInfoData text;
    initStringInfo(&text);
    print_seen(&text, position.seen);
    if (position.is_inside) {
        appendStringInfoChar(&text, ';');
        print_seen(&text, position.reading);
        appendStringInfo(&text, ";" INT64_FORMAT, position.id);
    }
    return text.data;
}

// A snapshot that was taken during recovery has all running transactions, also those inside of
// others, in the second list. One's own transaction is in neither, and has not ended.
SeenTransactions seen_now() {
    Snapshot snapshot = GetActiveSnapshot();
    FullTransactionId next = ReadNextFullTransactionId();
    const TransactionId* running = snapshot->takenDuringRecovery ? snapshot->subxip : snapshot->xip;
    int count =
        snapshot->takenDuringRecovery ? snapshot->subxcnt : static_cast<int>(snapshot->xcnt);
    SeenTransactions seen = {};
    seen.xmin = seen.xmax = full_number(snapshot->xmax, next);
    auto* numbers = static_cast<int64*>(palloc(sizeof(int64) * (count + 1)));
    int found = 0;
    auto add = [&](uint64 number) {
        if (number < seen.xmax)
            numbers[found++] = static_cast<int64>(number);
    };
    for (int i = 0; i < count; i++)
        add(full_number(running[i], next));
    FullTransactionId own = GetTopFullTransactionIdIfAny();
    if (FullTransactionIdIsValid(own))
        add(U64FromFullTransactionId(own));
    qsort(numbers, found, sizeof(int64), compare_numbers);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * (found + 1)));
    for (int i = 0; i < found; i++)
        values[i] = Int64GetDatum(numbers[i]);
    if (found > 0)
        seen.xmin = static_cast<uint64>(numbers[0]);
    seen.running = PointerGetDatum(
        construct_array(values, found, INT8OID, sizeof(int64), true, TYPALIGN_DOUBLE));
    return seen;
}

} // namespace interlock::history
