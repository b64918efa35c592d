-- Notes that an ORM saves. It moves the version and does not compare it. Every save that was acknowledged is noted in `saved`.
CREATE TABLE note (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, version int NOT NULL DEFAULT 1);
CREATE TABLE saved (id int);
INSERT INTO note SELECT generate_series(1, 50);
-- the statement of the ORM, in a program that notes when it is refused
CREATE TABLE refused (id int);
CREATE FUNCTION orm_saves(what int, value int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE note SET n = value, version = version + 1 WHERE id IN (what);
    INSERT INTO saved VALUES (what);
    RETURN true;
EXCEPTION WHEN SQLSTATE 'IL011' THEN
    INSERT INTO refused VALUES (what);
    RETURN false;
END $$;
