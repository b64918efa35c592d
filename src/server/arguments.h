// The arguments of an SQL function, with the checks of every verb: a null where a value is needed
// is 22004 and names the argument. A STRICT function would silently do nothing.
#pragma once

#include "server/name_list.h"

namespace interlock::inline server {

// Whether they are equal but for the case of letters.
inline bool is_same_word(std::string_view left, std::string_view right) {
    return left.size() == right.size() &&
           pg_strncasecmp(left.data(), right.data(), left.size()) == 0;
}

// A value as a cast to text prints it. A literal without a cast is of type unknown.
char* print_value(Oid type, Datum value);

// In microseconds; a month has 30 days.
inline double length_of(const Interval& interval) {
    return (interval.month * 30.0 + interval.day) * USECS_PER_DAY +
           static_cast<double>(interval.time);
}

// Of any kind that users set: ten years.
constexpr int64 kLongestDuration = 3653 * USECS_PER_DAY;

// An argument of type interlock.seconds, in microseconds: above zero, or zero and above, and at
// most ten years. Raises 22023 with the hint; also for numbers that are no duration, such as NaN.
int64 duration_argument(const Interval* interval, const char* name,
                        const char* hint = "For example '5 min', or 300 for seconds.");
int64 duration_or_zero_argument(const Interval* interval, const char* name, const char* hint);

// The same, as an interval for a column. The server prints some that have parts below zero in a way
// that it does not read: one would stop the restore of the whole table.
Interval* duration_to_store(Interval* interval, const char* name);

// The errors of bad arguments, one for each kind. The hint may be null.
// 22023: argument "name" and the rule, as in "must not be empty".
[[noreturn]] void refuse_argument(const char* name, const char* rule, const char* hint = nullptr);
[[noreturn]] void refuse_empty(const char* name, const char* hint = nullptr);
[[noreturn]] void refuse_long(const char* name, size_t limit, const char* hint = nullptr);
// 22023: for an argument that takes one of some words, which the hint lists.
[[noreturn]] void refuse_value(const char* name, std::string_view value, const char* hint);
// 22004: an array contains nulls.
[[noreturn]] void refuse_nulls(const char* name, const char* hint = nullptr);

// Return the value; 22023 for others.
int32 above_zero(int32 value, const char* name, const char* hint = nullptr);
int32 not_negative(int32 value, const char* name);

// The name of a key for these errors: argument "key", or an element, from 1, of argument "keys".
const char* name_of_key(int element);

class Arguments {
public:
    explicit Arguments(FunctionCallInfo fcinfo) : fcinfo_(fcinfo) {}

    // Of the called function, as SQL names it.
    const char* function_name() const { return get_func_name(fcinfo_->flinfo->fn_oid); }

    int count() const { return fcinfo_->nargs; }
    bool is_null(int n) const { return n >= fcinfo_->nargs || fcinfo_->args[n].isnull; }

    // Whether the SQL of the function has argument n: an older version may not.
    bool is_given(int n) const { return n < fcinfo_->nargs; }

    // The value of argument n; raises 22004 when it is null.
    Datum required(int n, const char* name) const {
        if (is_null(n))
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("argument \"%s\" must not be null", name)));
        return fcinfo_->args[n].value;
    }
    Datum value(int n) const { return fcinfo_->args[n].value; }
    NullableDatum optional(int n) const { return {is_null(n) ? 0 : value(n), is_null(n)}; }

    Oid relation(int n) const { return DatumGetObjectId(required(n, "rel")); }
    const char* name(int n, const char* arg) const {
        return NameStr(*DatumGetName(required(n, arg)));
    }
    char* string(int n, const char* arg) const { return TextDatumGetCString(required(n, arg)); }
    // An argument of any type, as print_value() has it.
    char* any_string(int n, const char* arg) const;
    // The text as it is, without a copy; it does not end with a zero byte.
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

    // Of columns. Raises 22004 for nulls in it, too, and 22023 for more columns than a table can
    // have: callers compare each name with all others.
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

    // The actual type of an argument declared "any"; of others, too. A call that comes without an
    // expression (the protocol's message for function calls) has values of the declared types.
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
