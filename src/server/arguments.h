// Reads and checks the arguments of an SQL function. A null where a value is needed raises 22004
// and names the argument. The functions are not STRICT, because a STRICT function silently does
// nothing.
#pragma once

#include "server/name_list.h"

namespace interlock::inline server {

// Whether the two are equal if upper and lower case count as the same.
inline bool is_same_word(std::string_view left, std::string_view right) {
    return left.size() == right.size() &&
           pg_strncasecmp(left.data(), right.data(), left.size()) == 0;
}

// The value as a cast to text prints it. A literal without a cast is of type unknown.
char* print_value(Oid type, Datum value);

// The length in microseconds. A month has 30 days.
inline double length_of(const Interval& interval) {
    return (interval.month * 30.0 + interval.day) * USECS_PER_DAY +
           static_cast<double>(interval.time);
}

// The longest duration that a user can set, for any purpose: ten years.
constexpr int64 kLongestDuration = 3653 * USECS_PER_DAY;

// Return an argument of type interlock.seconds in microseconds. It must be above zero (or zero, for
// the second function) and at most ten years. Otherwise they raise 22023 with the hint, also for a
// number that is no duration, such as NaN.
int64 duration_argument(const Interval* interval, const char* name,
                        const char* hint = "For example '5 min', or 300 for seconds.");
int64 duration_or_zero_argument(const Interval* interval, const char* name, const char* hint);

// The same check, but returns an interval that can be stored in a column. The server prints some
// intervals with negative parts in a form that it cannot read. One such value would stop the
// restore of the whole table.
Interval* duration_to_store(Interval* interval, const char* name);

// Each function raises the error for one kind of bad argument. The hint may be null.
//
// 22023: the name of the argument and the rule, such as "must not be empty".
[[noreturn]] void refuse_argument(const char* name, const char* rule, const char* hint = nullptr);
[[noreturn]] void refuse_empty(const char* name, const char* hint = nullptr);
[[noreturn]] void refuse_long(const char* name, size_t limit, const char* hint = nullptr);
// 22023: the argument must be one of a few words. The hint lists them.
[[noreturn]] void refuse_value(const char* name, std::string_view value, const char* hint);
// 22004: the argument is null; an array contains nulls.
[[noreturn]] void refuse_null(const char* name);
[[noreturn]] void refuse_nulls(const char* name, const char* hint = nullptr);

// Return the value. Raise 22023 if it is out of range.
int32 above_zero(int32 value, const char* name, const char* hint = nullptr);
int32 not_negative(int32 value, const char* name);

// How these errors name a key: argument "key", or the element of argument "keys", counted from 1.
const char* name_of_key(int element);

class Arguments {
public:
    explicit Arguments(FunctionCallInfo fcinfo) : fcinfo_(fcinfo) {}

    // The name of the called function in SQL.
    const char* function_name() const { return get_func_name(fcinfo_->flinfo->fn_oid); }

    bool is_null(int n) const { return n >= fcinfo_->nargs || fcinfo_->args[n].isnull; }

    // The value of argument n. Raises 22004 if it is null.
    Datum required(int n, const char* name) const {
        if (is_null(n))
            refuse_null(name);
        return fcinfo_->args[n].value;
    }
    Datum value(int n) const { return fcinfo_->args[n].value; }
    NullableDatum optional(int n) const { return {is_null(n) ? 0 : value(n), is_null(n)}; }

    Oid relation(int n) const { return DatumGetObjectId(required(n, "rel")); }
    const char* name(int n, const char* arg) const {
        return NameStr(*DatumGetName(required(n, arg)));
    }
    char* string(int n, const char* arg) const { return TextDatumGetCString(required(n, arg)); }
    // An argument of any type, as text. See print_value().
    char* any_string(int n, const char* arg) const;
    // The text without a copy. It does not end with a zero byte.
    std::string_view view(int n, const char* arg) const {
        const text* value = DatumGetTextPP(required(n, arg));
        return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
    }
    char* string_or_null(int n) const {
        return is_null(n) ? nullptr : TextDatumGetCString(value(n));
    }
    bool boolean(int n, const char* arg) const { return DatumGetBool(required(n, arg)); }
    Jsonb* jsonb(int n, const char* arg) const { return DatumGetJsonbP(required(n, arg)); }
    Jsonb* jsonb_or_null(int n) const { return is_null(n) ? nullptr : DatumGetJsonbP(value(n)); }
    Interval* interval(int n, const char* arg) const { return DatumGetIntervalP(required(n, arg)); }

    // A list of column names. Raises 22004 if it contains a null. Raises 22023 if it has more names
    // than a table can have columns, because callers compare each name with all others.
    NameList names(int n, const char* arg) const {
        Datum* values;
        bool* nulls;
        int count;
        deconstruct_array(DatumGetArrayTypeP(required(n, arg)), NAMEOID, NAMEDATALEN, false,
                          TYPALIGN_CHAR, &values, &nulls, &count);
        if (count > MaxHeapAttributeNumber)
            refuse_argument(
                arg, psprintf("must not have more than %d elements", MaxHeapAttributeNumber));
        auto** names = static_cast<const char**>(palloc(sizeof(char*) * (count + 1)));
        for (int i = 0; i < count; i++) {
            if (nulls[i])
                refuse_nulls(arg);
            names[i] = NameStr(*DatumGetName(values[i]));
        }
        return {names, count};
    }

    // The type of the value that was passed. It matters for an argument declared "any". The
    // protocol's message for function calls has no expression: then the declared type is returned.
    Oid type(int n) const {
        Oid actual = get_fn_expr_argtype(fcinfo_->flinfo, n);
        return OidIsValid(actual) ? actual : declared_type(n);
    }

private:
    Oid declared_type(int n) const {
        Oid* types;
        int count;
        get_func_signature(fcinfo_->flinfo->fn_oid, &types, &count);
        return types[n];
    }

    FunctionCallInfo fcinfo_;
};

} // namespace interlock::inline server
