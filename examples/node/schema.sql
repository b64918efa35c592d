-- The tables of the programs in this folder. Run it as the owner of the tables; the programs connect as the role app.

CREATE TABLE document (id int PRIMARY KEY, body text NOT NULL DEFAULT '');
CREATE TABLE item (id int PRIMARY KEY, name text, description text, price numeric, stock int NOT NULL DEFAULT 0);
CREATE TABLE cart (id text PRIMARY KEY, items jsonb NOT NULL);
CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cart text NOT NULL, status text NOT NULL DEFAULT 'pending', paid numeric);
CREATE TABLE order_line (order_id int REFERENCES orders, item int, amount int);
CREATE TABLE payment (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id int REFERENCES orders, amount numeric CHECK (amount > 0));
CREATE TABLE report (day date PRIMARY KEY, payments int, total numeric);
GRANT SELECT, INSERT, UPDATE, DELETE ON document, item, cart, orders, order_line, payment, report TO app;

SELECT interlock.enable_versioning('document');
SELECT interlock.enable_marker('document', '5 min', notify => 'on', take_over => 'allow');
SELECT interlock.enable_escrow('item', 'stock');
SELECT interlock.own_columns('item', 'editor', '{description}', on_violation => 'skip');
SELECT interlock.grant_writer('importer', 'app');
CREATE FUNCTION unpaid(old orders, new orders) RETURNS text LANGUAGE sql AS $$ SELECT 'nothing is paid' WHERE new.paid IS NULL $$;
SELECT interlock.define_transitions('orders', 'status', '{"pending": ["paid", "cancelled"], "paid": ["shipped"]}',
    guards => '{"pending": {"paid": "unpaid(orders, orders)"}}');
SELECT interlock.define_idempotency_scope('payment');
SELECT interlock.define_idempotency_scope('report', model => 'job', ttl => '7 days', max_attempts => 3);
SELECT interlock.define_idempotency_scope('import', model => 'job', ttl => '30 days');
SELECT interlock.grant_idempotency_scope(scope, 'app') FROM unnest('{payment,report,import}'::text[]) scope;
