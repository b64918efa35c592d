-- Payments, what was charged for them, and a hand-made table of those that are done.
CREATE TABLE charge (payment int);
CREATE TABLE processed (payment int);
CREATE TABLE imported (part int);
-- whether the claim is still the worker's, and stays so until its transaction ends; a slow one may have lost it to another
CREATE FUNCTION is_mine(payment int, token bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM interlock.idempotency_assert('pay', 'payment ' || payment, token);
    RETURN true;
EXCEPTION WHEN SQLSTATE 'IL008' THEN
    RETURN false;
END $$;
