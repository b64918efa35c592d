#include "table/json_form.h"

#include "table/column.h"

namespace interlock::inline table {

static HTAB* forms = nullptr;
static uint64 type_changes = 0;
static uint64 forms_of = 0; // the changes that they have seen

static void note_type_change(Datum, CatalogCache, uint32) { type_changes++; }

static HTAB* current_forms() {
    static bool watched = false;
    if (!watched)
        CacheRegisterSyscacheCallback(TYPEOID, note_type_change, 0);
    watched = true;
    if (forms != nullptr && forms_of == type_changes)
        return forms;
    if (forms != nullptr)
        hash_destroy(forms);
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(JsonForm);
    control.hcxt = CacheMemoryContext;
    forms = nullptr;
    forms =
        hash_create("pg_interlock json forms", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    forms_of = type_changes;
    return forms;
}

static JsonKind scalar_kind(Oid base) {
    switch (base) {
    case BOOLOID:
        return JsonKind::kBoolean;
    case INT2OID:
    case INT4OID:
    case INT8OID:
        return JsonKind::kInteger;
    case NUMERICOID:
        return JsonKind::kNumeric;
    case FLOAT4OID:
    case FLOAT8OID:
        return JsonKind::kFloat;
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID:
        return JsonKind::kString;
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return JsonKind::kTime;
    case JSONOID:
        return JsonKind::kJson;
    case JSONBOID:
        return JsonKind::kJsonb;
    default:
        return JsonKind::kText;
    }
}

static bool prints_names(Oid base) {
    switch (base) {
    case REGCLASSOID:
    case REGCOLLATIONOID:
    case REGCONFIGOID:
    case REGDICTIONARYOID:
    case REGOPERATOROID:
    case REGOPEROID:
    case REGPROCEDUREOID:
    case REGPROCOID:
    case REGTYPEOID:
        return true;
    default:
        return false;
    }
}

// What the output function of a row, an array or a range prints within, it prints as the session's
// settings say. The fields of a row type can change, so all settings count for it.
static Printing printing_of(const JsonForm& form) {
    if (form.kind == JsonKind::kObject)
        return {.styles = true, .names = true, .money = true};
    Oid within = form.element;
    if (get_typtype(form.base) == TYPTYPE_RANGE)
        within = get_range_subtype(form.base);
    else if (get_typtype(form.base) == TYPTYPE_MULTIRANGE)
        within = get_multirange_range(form.base);
    if (OidIsValid(within)) {
        Printing printing = json_form(within).prints_by;
        printing.styles = true;
        return printing;
    }
    return {.styles = form.kind == JsonKind::kFloat ||
                      (form.kind == JsonKind::kText && !prints_alike(form.base)),
            .names = prints_names(form.base),
            .money = form.base == MONEYOID};
}

static JsonForm make_form(Oid type) {
    check_stack_depth();
    JsonForm form = {};
    form.type = type;
    form.base = getBaseType(type);
    form.kind = scalar_kind(form.base);
    form.length = get_typlen(form.base);
    form.element = get_element_type(form.base);
    bool is_varlena;
    getTypeOutputInfo(form.base, &form.output, &is_varlena);
    if (OidIsValid(form.element)) {
        get_typlenbyvalalign(form.element, &form.element_length, &form.element_by_value,
                             &form.element_align);
        form.element_kind = json_form(form.element).kind;
        form.kind = JsonKind::kArray;
    } else if (type_is_rowtype(form.base)) {
        form.kind = JsonKind::kObject;
    }
    form.prints_by = printing_of(form);
    return form;
}

JsonForm json_form(Oid type) {
    auto* found = static_cast<JsonForm*>(hash_search(current_forms(), &type, HASH_FIND, nullptr));
    if (found != nullptr)
        return *found;
    uint64 changes = type_changes;
    JsonForm form = make_form(type);
    if (changes == type_changes) // else a part of it may be old already
        *static_cast<JsonForm*>(hash_search(current_forms(), &type, HASH_ENTER, nullptr)) = form;
    return form;
}

} // namespace interlock::inline table
