// What a write computes and compares, as data. The same expression becomes the text of a statement,
// or is evaluated for a row without a statement. The evaluation does what the executor would do for
// that text: SQL's rules for null, the operators and collations of the types, the same errors, and
// the same short-circuits.
//
// There are only the terms that the SQL functions need. A new term needs its text and its value in
// expression.cpp, and a function's case in test/sql/direct_*.sql, which compare the two.
#pragma once

#include "table/plan.h"
#include "table/relation.h"

namespace interlock::inline execution {

enum class Term : uint8 {
    kColumn,     // the value in the row before the write
    kValue,      // a parameter
    kLiteral,    // part of the statement's text: the same in all writes of one PlanKind
    kClock,      // clock_timestamp()
    kNextNumber, // nextval() of a sequence of the extension
    // kEqual to kAtMost compare integers of any size, or times of one type. kEqual also compares
    // texts.
    kEqual,
    kGreater,
    kAtLeast,
    kAtMost,
    kSame, // the = of the type's default operator class, of a column and a value
    kIsNull,
    kNot,
    kOr,
    kCoalesce,
    kChoose,   // CASE WHEN .. THEN .. ELSE .. END
    kGreatest, // of two bigints
    kSuccessor // a bigint + 1
};

struct Expression {
    Term term;
    bool asks_clock;   // the expression or an operand is kClock
    AttrNumber column; // kColumn
    Oid type;          // of the value
    int32 typmod;      // of the value; -1: none
    Oid collation;     // of the column that it is or compares; InvalidOid: the type's own
    union {
        NullableDatum value;   // kValue, kLiteral
        const char* name;      // kNextNumber: the sequence
        const FmgrInfo* equal; // kSame
    };
    const Expression* operands[3];
};

// The expressions of one write. It lives on the stack of the function that builds it. Building and
// evaluating expressions allocates only values by reference.
class Expressions {
public:
    explicit Expressions(const TableInfo* info) : info_(info), next_(expressions_) {}
    Expressions(const Expressions&) = delete;
    Expressions& operator=(const Expressions&) = delete;

    const Expression* column(AttrNumber attnum) {
        Form_pg_attribute attribute = TupleDescAttr(info_->columns, attnum - 1);
        Expression* expression = add(Term::kColumn, attribute->atttypid);
        expression->column = attnum;
        expression->typmod = attribute->atttypmod;
        expression->collation = attribute->attcollation;
        return expression;
    }
    const Expression* value(Oid type, NullableDatum value) {
        Expression* expression = add(Term::kValue, type);
        expression->value = value;
        return expression;
    }
    const Expression* value(Oid type, Datum value) {
        return this->value(type, NullableDatum{value, false});
    }
    const Expression* text(const char* value); // null for null
    // A value as the column stores it: already cut or rounded to the column's size.
    const Expression* stored_value(AttrNumber attnum, NullableDatum value);

    const Expression* literal(Oid type, NullableDatum value) {
        Expression* expression = add(Term::kLiteral, type);
        expression->value = value;
        return expression;
    }
    const Expression* literal_text(const char* value);
    const Expression* literal_number(Oid type, int64 value); // of an integer type
    const Expression* null_of(AttrNumber attnum);            // NULL of the column's type

    const Expression* clock() {
        Expression* expression = add(Term::kClock, TIMESTAMPTZOID);
        expression->asks_clock = true;
        return expression;
    }
    const Expression* next_number(const char* sequence);

    const Expression* equal(const Expression* left, const Expression* right) {
        const Expression* expression = combine(Term::kEqual, BOOLOID, left, right);
        if (OidIsValid(expression->collation) && expression->collation != DEFAULT_COLLATION_OID)
            compares_otherwise_ = true;
        return expression;
    }
    const Expression* greater(const Expression* left, const Expression* right) {
        return combine(Term::kGreater, BOOLOID, left, right);
    }
    const Expression* at_least(const Expression* left, const Expression* right) {
        return combine(Term::kAtLeast, BOOLOID, left, right);
    }
    const Expression* at_most(const Expression* left, const Expression* right) {
        return combine(Term::kAtMost, BOOLOID, left, right);
    }
    const Expression* same(const Expression* left, const Expression* right);

    const Expression* is_null(const Expression* operand) {
        return combine(Term::kIsNull, BOOLOID, operand, operand);
    }
    const Expression* negation(const Expression* operand) {
        return combine(Term::kNot, BOOLOID, operand, operand);
    }
    const Expression* either(const Expression* left, const Expression* right) {
        return combine(Term::kOr, BOOLOID, left, right);
    }

    const Expression* coalesce(const Expression* left, const Expression* right) {
        return combine(Term::kCoalesce, left->type, left, right);
    }
    const Expression* choose(const Expression* condition, const Expression* then,
                             const Expression* otherwise);
    const Expression* greatest(const Expression* left, const Expression* right) {
        return combine(Term::kGreatest, INT8OID, left, right);
    }
    const Expression* successor(const Expression* operand) {
        return combine(Term::kSuccessor, INT8OID, operand, operand);
    }

    // Whether an expression compares with a function other than the server's own functions for
    // numbers, times, and texts of the default collation.
    bool compares_otherwise() const { return compares_otherwise_; }
    int count() const { return static_cast<int>(next_ - expressions_); }
    const Expression& operator[](int i) const { return expressions_[i]; }

private:
    Expression* add(Term term, Oid type) {
        if (next_ == expressions_ + kMost)
            elog(ERROR, "a write has too many expressions");
        Expression* expression = next_++;
        expression->term = term;
        expression->type = type;
        expression->typmod = -1;
        expression->collation = InvalidOid;
        expression->asks_clock = false;
        return expression;
    }
    // An operator with one operand (the left one) or two. It has the collation that the parser
    // would derive: a column's own collation takes precedence over the default collation of
    // parameters and literals (merge_collation_state in parse_collate.c).
    Expression* combine(Term term, Oid type, const Expression* left, const Expression* right) {
        Expression* expression = add(term, type);
        expression->operands[0] = left;
        expression->operands[1] = right;
        expression->collation = OidIsValid(left->collation) ? left->collation : right->collation;
        expression->asks_clock = left->asks_clock || right->asks_clock;
        return expression;
    }

    static constexpr int kMost = 48;
    const TableInfo* info_;
    Expression* next_;
    bool compares_otherwise_ = false;
    Expression expressions_[kMost];
};

static_assert(std::is_trivially_destructible_v<Expressions>);

// --- As text ----------------------------------------------------------------------------------

// Adds the text of the expression for the row t, and its parameters.
void add_expression(Statement* statement, const TableInfo* info, const Expression& expression);

// Adds the values of the parameters, in the order in which add_expression() adds the parameters.
void add_values(Parameters* parameters, const Expression& expression);

// --- Without a statement ----------------------------------------------------------------------

NullableDatum evaluate_term(const Expression& expression, TupleTableSlot* row);

inline NullableDatum evaluate(const Expression& expression, TupleTableSlot* row) {
    if (expression.term == Term::kColumn) {
        NullableDatum result;
        result.value = slot_getattr(row, expression.column, &result.isnull);
        return result;
    }
    if (expression.term == Term::kValue || expression.term == Term::kLiteral)
        return expression.value;
    return evaluate_term(expression, row);
}

// Whether a condition is true for the row, and neither false nor null, as in ExecQual.
inline bool is_met(const Expression& condition, TupleTableSlot* row) {
    NullableDatum value = evaluate(condition, row);
    return !value.isnull && DatumGetBool(value.value);
}

// Whether assigned_value() can convert the expression for that column as an UPDATE does.
bool can_assign(Form_pg_attribute column, const Expression& expression);

// The expression's value, converted as in an assignment to the column. Raises 22001 for a text that
// is too long.
NullableDatum assigned_value(Form_pg_attribute column, const Expression& expression,
                             TupleTableSlot* row);

} // namespace interlock::inline execution
