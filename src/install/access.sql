-- Rights of operators, monitors and administrators

CREATE FUNCTION interlock.grant_access(kind text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.grant_access(text, name) IS
'Grants a role, in this database, what PUBLIC lacks. ''monitor'': read audits, grants, the sweeper, and the idempotency keys and the
write log without the values in them. ''operator'': force_unlock_row, break_lease, break_leases, sweep, idempotency_sweep,
idempotency_forget, confirm_stop, end_grace, reset_contention.
''administrator'': define, grant and revoke idempotency scopes and writers, suppress_history. Kinds add up. Call it again after an
upgrade, for what is new.
Only the owner of the extension, and superusers, may call it. Errors: 42501 another role, 42704 no such role, 22023 another kind.';

CREATE FUNCTION interlock.revoke_access(kind text, role name) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION interlock.revoke_access(text, name) IS
'Revokes what grant_access grants, and nothing else; also what was granted of it by GRANT. Does nothing if nothing was granted.
Errors: as grant_access.';
