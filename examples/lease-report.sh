#!/usr/bin/env bash
# A report that is written under a lease: lease-heartbeat.sh report:daily 30 lease-report.sh
psql -Xq -o /dev/null -v ON_ERROR_STOP=1 -v "key=$LEASE_KEY" -v "token=$LEASE_TOKEN" <<'END'
BEGIN;
SELECT interlock.assert_lease(:'key', :'token');        -- IL006 when the lease is lost
INSERT INTO daily_report VALUES (current_date, 'all is well');
COMMIT;
END
