-- Products of a shop. Each column has a writer, and each writer saves the whole product: editors the description, six workers the rest.
-- For the counting, a value is the number of times it was written; of a description the second editor counts in millions, so that no two edits are alike.
CREATE TABLE product (id int PRIMARY KEY, description bigint NOT NULL DEFAULT 0, thumbnail int NOT NULL DEFAULT 0, search int NOT NULL DEFAULT 0,
    translation int NOT NULL DEFAULT 0, price int NOT NULL DEFAULT 0, stock int NOT NULL DEFAULT 0, review int NOT NULL DEFAULT 0);
INSERT INTO product SELECT g FROM generate_series(0, 10) g;
CREATE TABLE saved (writer text, at timestamptz DEFAULT clock_timestamp());
CREATE VIEW lost AS
    SELECT sum(saved - stored) FILTER (WHERE writer = 'editor') AS descriptions, sum(saved - stored) FILTER (WHERE writer <> 'editor') AS others
      FROM (SELECT writer, count(*) AS saved FROM saved GROUP BY writer) s
      JOIN (SELECT w.writer, sum(w.written) AS stored FROM product, LATERAL (VALUES ('editor', description / 1000000 + description % 1000000), ('thumbnail', thumbnail), ('search', search),
                ('translation', translation), ('price', price), ('stock', stock), ('review', review)) w (writer, written)
               WHERE id > 0 GROUP BY w.writer) p USING (writer);
-- versions as they are kept by hand
CREATE TABLE product_version (id int, saved jsonb);
CREATE FUNCTION keep_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO product_version VALUES (NEW.id, to_jsonb(NEW));
    RETURN NULL;
END $$;
CREATE TRIGGER keep_version AFTER UPDATE ON product FOR EACH ROW EXECUTE FUNCTION keep_version();
-- a worker hears of an edit, and saves the product as it read it, with its own column changed; SETUP says what comes before in its transaction
CREATE PROCEDURE one_edit(setup text) LANGUAGE plpgsql AS $$
DECLARE
    worker text;
BEGIN
    EXECUTE replace(setup, 'WRITER', 'editor');
    UPDATE product SET description = 1 WHERE id = 0;
    COMMIT;
    FOREACH worker IN ARRAY '{thumbnail,search,translation,price,stock,review}'::text[] LOOP
        EXECUTE replace(setup, 'WRITER', worker);
        EXECUTE format('UPDATE product SET %I = 1 WHERE id = 0', worker);
        COMMIT;
    END LOOP;
END $$;
