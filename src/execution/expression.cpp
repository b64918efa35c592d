#include "execution/expression.h"

#include "execution/column_default.h"
#include "table/own_table.h"
#include "table/row.h"

namespace interlock::inline execution {

static bool is_text(Oid type) { return type == TEXTOID || type == VARCHAROID; }

// --- Making them ------------------------------------------------------------------------------

const Expression* Expressions::text(const char* value) {
    bool is_null = value == nullptr;
    return this->value(TEXTOID, {is_null ? 0 : CStringGetTextDatum(value), is_null});
}

const Expression* Expressions::stored_value(AttrNumber attnum, NullableDatum value) {
    Form_pg_attribute attribute = TupleDescAttr(info_->columns, attnum - 1);
    Expression* expression = add(Term::kValue, attribute->atttypid);
    expression->value = value;
    expression->typmod = attribute->atttypmod;
    expression->collation = attribute->attcollation;
    return expression;
}

const Expression* Expressions::literal_text(const char* value) {
    return literal(TEXTOID, {CStringGetTextDatum(value), false});
}

const Expression* Expressions::literal_number(Oid type, int64 value) {
    Datum datum = type == INT8OID ? Int64GetDatum(value) : Int32GetDatum(static_cast<int32>(value));
    return literal(type, {datum, false});
}

const Expression* Expressions::null_of(AttrNumber attnum) {
    return literal(TupleDescAttr(info_->columns, attnum - 1)->atttypid, {0, true});
}

const Expression* Expressions::next_number(const char* sequence) {
    Expression* expression = add(Term::kNextNumber, INT8OID);
    expression->name = sequence;
    return expression;
}

const Expression* Expressions::choose(const Expression* condition, const Expression* then,
                                      const Expression* otherwise) {
    Expression* expression = add(Term::kChoose, then->type);
    expression->operands[0] = condition;
    expression->operands[1] = then;
    expression->operands[2] = otherwise;
    expression->asks_clock = condition->asks_clock || then->asks_clock || otherwise->asks_clock;
    return expression;
}

const Expression* Expressions::same(const Expression* left, const Expression* right) {
    Expression* expression = combine(Term::kSame, BOOLOID, left, right);
    expression->equal = &lookup_type_cache(left->type, TYPECACHE_EQ_OPR_FINFO)->eq_opr_finfo;
    compares_otherwise_ = true;
    return expression;
}

static int operand_count(Term term) {
    switch (term) {
    case Term::kColumn:
    case Term::kValue:
    case Term::kLiteral:
    case Term::kClock:
    case Term::kNextNumber:
        return 0;
    case Term::kIsNull:
    case Term::kNot:
    case Term::kSuccessor:
        return 1;
    case Term::kChoose:
        return 3;
    default:
        return 2;
    }
}

// --- As text ------------------------------------------------------------------------------------

static const char* literal_in_text(const Expression& literal) {
    if (literal.value.isnull)
        return "NULL";
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(literal.type, &output, &is_varlena);
    return psprintf("%s::%s",
                    quote_literal_cstr(OidOutputFunctionCall(output, literal.value.value)),
                    format_type_be_qualified(literal.type));
}

namespace {

// What stands before, between and after the operands.
struct Spelling {
    const char* parts[4];
};

} // namespace

static Spelling spelling_of(const Expression& expression) {
    switch (expression.term) {
    case Term::kEqual:
        return {{"", " OPERATOR(pg_catalog.=) ", ""}};
    case Term::kGreater:
        return {{"", " OPERATOR(pg_catalog.>) ", ""}};
    case Term::kAtLeast:
        return {{"", " OPERATOR(pg_catalog.>=) ", ""}};
    case Term::kAtMost:
        return {{"", " OPERATOR(pg_catalog.<=) ", ""}};
    case Term::kSame: {
        Oid type = expression.operands[0]->type;
        Oid equals = lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
        return {{"", psprintf("%s %s ", enum_cast(type), operator_text(equals)), ""}};
    }
    case Term::kIsNull:
        return {{"", " IS NULL"}};
    case Term::kNot:
        return {{"NOT ", ""}};
    case Term::kOr:
        return {{"(", " OR ", ")"}};
    case Term::kCoalesce:
        return {{"COALESCE(", ", ", ")"}};
    case Term::kChoose:
        return {{"CASE WHEN ", " THEN ", " ELSE ", " END"}};
    case Term::kGreatest:
        return {{"GREATEST(", ", ", ")"}};
    case Term::kSuccessor:
        return {{"", " OPERATOR(pg_catalog.+) 1"}};
    default:
        pg_unreachable();
    }
}

void add_expression(Statement* statement, const TableInfo* info, const Expression& expression) {
    switch (expression.term) {
    case Term::kColumn:
        statement->add("t.%s", quote_identifier(column_name(info, expression.column)));
        return;
    case Term::kValue:
        statement->add("$%d", statement->parameter(expression.type));
        return;
    case Term::kLiteral:
        statement->add("%s", literal_in_text(expression));
        return;
    case Term::kClock:
        statement->add("pg_catalog.clock_timestamp()");
        return;
    case Term::kNextNumber:
        statement->add("pg_catalog.nextval('%s.%s'::pg_catalog.regclass)", kOwnSchema,
                       expression.name);
        return;
    default:
        break;
    }
    Spelling spelling = spelling_of(expression);
    int count = operand_count(expression.term);
    for (int i = 0; i < count; i++) {
        statement->add("%s", spelling.parts[i]);
        add_expression(statement, info, *expression.operands[i]);
    }
    statement->add("%s", spelling.parts[count]);
}

void add_values(Parameters* parameters, const Expression& expression) {
    if (expression.term == Term::kValue)
        parameters->add(expression.value);
    int count = operand_count(expression.term);
    for (int i = 0; i < count; i++)
        add_values(parameters, *expression.operands[i]);
}

// --- Without a statement ------------------------------------------------------------------------

// Never inlined, so that the common and simple terms do not save registers for all others.

static NullableDatum not_null(Datum value) { return {value, false}; }
static NullableDatum truth(bool value) { return {BoolGetDatum(value), false}; }

static bool is_true(NullableDatum value) { return !value.isnull && DatumGetBool(value.value); }

// Times are compared as the integers that they are (timestamp_cmp_internal).
static bool compare_numbers(Term term, int64 left, int64 right) {
    switch (term) {
    case Term::kEqual:
        return left == right;
    case Term::kGreater:
        return left > right;
    case Term::kAtLeast:
        return left >= right;
    default:
        return left <= right;
    }
}

// texteq, for collations that are deterministic: others are left to the statement (may_compare in
// execution/eligible.cpp).
static bool have_same_bytes(Datum left, Datum right) {
    const text* one = DatumGetTextPP(left);
    const text* other = DatumGetTextPP(right);
    size_t size = VARSIZE_ANY_EXHDR(one);
    return size == VARSIZE_ANY_EXHDR(other) &&
           memcmp(VARDATA_ANY(one), VARDATA_ANY(other), size) == 0;
}

// As the functions of the operators that add_expression names: the server's own for numbers, times
// and texts (int48eq and its like, timestamptz_gt, texteq), and the type's for kSame.
static bool compare_values(const Expression& expression, Datum left, Datum right) {
    if (expression.term == Term::kSame)
        return DatumGetBool(FunctionCall2Coll(const_cast<FmgrInfo*>(expression.equal),
                                              expression.collation, left, right));
    Oid type = expression.operands[0]->type;
    if (is_text(type))
        return have_same_bytes(left, right);
    return compare_numbers(expression.term, integer_of(type, left),
                           integer_of(expression.operands[1]->type, right));
}

// Operators are strict: of null comes null (EEOP_FUNCEXPR_STRICT in execExprInterp.c).
static pg_noinline NullableDatum compare(const Expression& expression, TupleTableSlot* row) {
    NullableDatum left = evaluate(*expression.operands[0], row);
    NullableDatum right = evaluate(*expression.operands[1], row);
    if (left.isnull || right.isnull)
        return {0, true};
    return truth(compare_values(expression, left.value, right.value));
}

// OR stops at the first operand that is true, and is null where none is but one is null
// (EEOP_BOOL_OR_STEP).
static pg_noinline NullableDatum either(const Expression& expression, TupleTableSlot* row) {
    NullableDatum left = evaluate(*expression.operands[0], row);
    if (is_true(left))
        return left;
    NullableDatum right = evaluate(*expression.operands[1], row);
    return is_true(right) || !left.isnull ? right : left;
}

// It checks the privileges on nextval() and on the sequence, as the statement does.
static pg_noinline NullableDatum next_number(const char* sequence) {
    Datum oid = ObjectIdGetDatum(own_table(sequence));
    Const* argument = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid), oid, false, true);
    return call_with_constants(makeFuncExpr(F_NEXTVAL, INT8OID, list_make1(argument), InvalidOid,
                                            InvalidOid, COERCE_EXPLICIT_CALL));
}

// Nulls do not count (EEOP_MINMAX).
static NullableDatum greatest(NullableDatum left, NullableDatum right) {
    if (left.isnull || right.isnull)
        return left.isnull ? right : left;
    return DatumGetInt64(left.value) >= DatumGetInt64(right.value) ? left : right;
}

// int8pl
static pg_noinline NullableDatum successor(NullableDatum value) {
    int64 result = 0;
    if (value.isnull)
        return value;
    if (pg_add_s64_overflow(DatumGetInt64(value.value), 1, &result))
        ereport(ERROR,
                (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
    return not_null(Int64GetDatum(result));
}

NullableDatum evaluate_term(const Expression& expression, TupleTableSlot* row) {
    auto operand = [&](int i) { return evaluate(*expression.operands[i], row); };
    switch (expression.term) {
    case Term::kColumn:
    case Term::kValue:
    case Term::kLiteral:
        return evaluate(expression, row);
    case Term::kClock:
        return not_null(TimestampTzGetDatum(GetCurrentTimestamp()));
    case Term::kNextNumber:
        return next_number(expression.name);
    case Term::kEqual:
    case Term::kGreater:
    case Term::kAtLeast:
    case Term::kAtMost:
    case Term::kSame:
        return compare(expression, row);
    case Term::kIsNull:
        return truth(operand(0).isnull);
    case Term::kNot: {
        NullableDatum value = operand(0);
        return value.isnull ? value : truth(!DatumGetBool(value.value));
    }
    case Term::kOr:
        return either(expression, row);
    case Term::kCoalesce: {
        NullableDatum value = operand(0);
        return value.isnull ? operand(1) : value;
    }
    case Term::kChoose:
        return operand(is_true(operand(0)) ? 1 : 2);
    case Term::kGreatest:
        return greatest(operand(0), operand(1));
    case Term::kSuccessor:
        return successor(operand(0));
    }
    pg_unreachable();
}

bool can_assign(Form_pg_attribute column, const Expression& expression) {
    Oid type = column->atttypid;
    if (type == VARCHAROID)
        return is_text(expression.type);
    return type == expression.type &&
           (column->atttypmod < 0 || column->atttypmod == expression.typmod ||
            type == TIMESTAMPTZOID);
}

// The conversions that transformAssignedExpr adds to a statement: one that cuts or rounds to the
// column's size, unless the value has been through that.
NullableDatum assigned_value(Form_pg_attribute column, const Expression& expression,
                             TupleTableSlot* row) {
    NullableDatum value = evaluate(expression, row);
    if (value.isnull || column->atttypmod < 0 || column->atttypmod == expression.typmod)
        return value;
    if (column->atttypid == VARCHAROID) {
        value.value = DirectFunctionCall3(varchar, value.value, Int32GetDatum(column->atttypmod),
                                          BoolGetDatum(false));
    } else if (column->atttypid == TIMESTAMPTZOID) {
        Timestamp time = DatumGetTimestamp(value.value);
        round_timestamp(&time, column->atttypmod);
        value.value = TimestampGetDatum(time);
    }
    return value;
}

} // namespace interlock::inline execution
