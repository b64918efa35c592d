#include "escrow/cart.h"

#include "server/arguments.h"
#include "table/settings_json.h"

namespace interlock::escrow {

constexpr const char* kItems = "items";
constexpr const char* kShapeHint =
    "For example '[{\"rel\": \"item\", \"key\": 7, \"column\": \"stock\", \"amount\": 1}]'.";
constexpr const char* kMembers[] = {"rel", "key", "column", "amount"};

[[noreturn]] static void refuse_member(const CartItem& item, const char* member, const char* rule) {
    refuse_argument(name_of_member(item, member), rule, kShapeHint);
}

static JsonbValue* required_member(const CartItem& item, JsonbContainer* object, const char* name) {
    JsonbValue* member = member_of(object, name);
    if (member == nullptr)
        refuse_member(item, name, "must be given");
    if (member->type == jbvNull)
        refuse_null(name_of_member(item, name));
    return member;
}

static char* required_text(const CartItem& item, JsonbContainer* object, const char* name) {
    JsonbValue* member = required_member(item, object, name);
    if (member->type != jbvString)
        refuse_member(item, name, "must be a string");
    return pnstrdup(member->val.string.val, member->val.string.len);
}

static Datum required_number(const CartItem& item, JsonbContainer* object, const char* name) {
    JsonbValue* member = required_member(item, object, name);
    if (member->type != jbvNumeric)
        refuse_member(item, name, "must be a number");
    return NumericGetDatum(member->val.numeric);
}

static void refuse_others(const CartItem& item, JsonbContainer* object) {
    each_member(object, [&](const char* name, const JsonbValue*) {
        for (const char* known : kMembers)
            if (strcmp(known, name) == 0)
                return;
        refuse_member(item, name, "is not a member of an item");
    });
}

static CartItem read_item(int number, const JsonbValue* value) {
    CartItem item = {};
    item.number = number;
    if (value->type == jbvNull)
        refuse_nulls(kItems, kShapeHint);
    if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
        refuse_argument(psprintf("%s[%d]", kItems, number), "must be an object", kShapeHint);
    JsonbContainer* object = value->val.binary.data;
    refuse_others(item, object);
    item.key = *required_member(item, object, "key");
    item.column = required_text(item, object, "column");
    item.amount = required_number(item, object, "amount");
    item.rel_text = required_text(item, object, "rel");
    item.rel = DatumGetObjectId(DirectFunctionCall1(regclassin, CStringGetDatum(item.rel_text)));
    return item;
}

static int order_of_tables(const void* left, const void* right) {
    const auto& one = *static_cast<const CartItem*>(left);
    const auto& other = *static_cast<const CartItem*>(right);
    return one.rel != other.rel ? (one.rel < other.rel ? -1 : 1) : one.number - other.number;
}

CartItems items_argument(const Arguments& arguments, int n) {
    Jsonb* json = arguments.jsonb(n, kItems);
    if (!JB_ROOT_IS_ARRAY(json) || JB_ROOT_IS_SCALAR(json))
        refuse_argument(kItems, "must be an array", kShapeHint);
    if (JB_ROOT_COUNT(json) == 0)
        refuse_empty(kItems, kShapeHint);
    if (JB_ROOT_COUNT(json) > kMostItems)
        refuse_argument(kItems, psprintf("must not have more than %d elements", kMostItems));
    CartItems items = {};
    items.first = static_cast<CartItem*>(palloc(sizeof(CartItem) * JB_ROOT_COUNT(json)));
    each_element(&json->root, [&](const JsonbValue* value) {
        items.first[items.count] = read_item(items.count + 1, value);
        items.count++;
    });
    qsort(items.first, items.count, sizeof(CartItem), order_of_tables);
    return items;
}

const char* name_of_member(const CartItem& item, const char* member) {
    return psprintf("%s[%d].%s", kItems, item.number, member);
}

int64 amount_of_item(const CartItem& item, const EscrowColumn& column) {
    const char* name = name_of_member(item, "amount");
    int64 amount = amount_of_argument(item.amount, name, column);
    if (amount <= 0)
        refuse_argument(name, "must be above zero");
    return amount;
}

EscrowCounter counter_of_item(const CartItem& item, Relation rel, const TableInfo* info,
                              const EscrowColumn* column) {
    auto* key = static_cast<Key*>(palloc(sizeof(Key)));
    *key = parse_key(rel, info, item.key);
    require_counter_key(rel, info, *column, *key);
    return counter_of({rel, info, key}, column);
}

} // namespace interlock::escrow
