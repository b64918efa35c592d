-- Documents with a hand-made marker. Three in ten editors forget to save; an import job knows nothing of markers.
CREATE TABLE document (id int PRIMARY KEY, body text, lock_status int NOT NULL DEFAULT 0, lock_by text, lock_time timestamptz, lock_until timestamptz);
CREATE TABLE refused (id int, holder text);
CREATE TABLE overwritten (id int, holder text);
CREATE TABLE late (id int, by interval);
INSERT INTO document SELECT g, 'text' FROM generate_series(1, 40) g;
-- the import: writes one row, and notes whose edit it wrote over, if that one still had time
CREATE FUNCTION import(doc int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    editor text;
BEGIN
    UPDATE document SET body = 'imported' WHERE id = doc RETURNING CASE WHEN lock_status = 1 AND lock_until > clock_timestamp() THEN lock_by END INTO editor;
    IF editor IS NOT NULL THEN
        INSERT INTO overwritten VALUES (doc, editor);
    END IF;
EXCEPTION WHEN SQLSTATE 'IL004' THEN
    INSERT INTO refused VALUES (doc, 'import');
END $$;
