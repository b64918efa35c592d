-- Children

CREATE FUNCTION interlock_internal.changes_parent(VARIADIC "any") RETURNS boolean
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.changes_parent("any") IS
'In WHEN of the triggers that guard_children creates: true for the first change of children of a parent in this transaction or
savepoint. Refuses the change while the parent is being edited by another holder (IL004). Only such a trigger can call it (39P01).';

CREATE FUNCTION interlock_internal.children_trigger() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock_internal.children_trigger() IS
'Moves the versions of the parents whose children have changed. Created by guard_children, three for each foreign key, which are
deferred to the end of the transaction.';

CREATE FUNCTION interlock.guard_children(child regclass, parent regclass, foreign_key name[] = NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.guard_children(regclass, regclass, name[]) IS
'Makes rows of child belong to the row of parent that their foreign key names. A change of such rows moves the version of the parent row,
once, at the end of the transaction. It is refused while the parent row is being edited (IL004). For the owner of child, with TRIGGER on
parent. foreign_key: the columns of the foreign key, if child has several foreign keys to parent.
Writers of child need what UPDATE of the version of parent needs: SELECT of its key and its version, UPDATE of its version.
Errors: 42501 not the owner, or no TRIGGER on parent, 55000 parent has neither versions nor markers, its version is in a unique
index, its key can be null, or tables in a circle, 22023 no such foreign key, or several and none named, 42809 not a table.';

CREATE FUNCTION interlock.unguard_children(child regclass, parent regclass) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.unguard_children(regclass, regclass) IS
'Ends what guard_children began, for all foreign keys from child to parent. For the owner of child.
Errors: 42501 not the owner, 55000 not guarded.';
