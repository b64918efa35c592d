-- One product: its thumbnails and its search entry are made by workers, and an import writes all of it.
CREATE TABLE product (id int PRIMARY KEY, thumbs int, entries int);
INSERT INTO product VALUES (7, 0, 0);
CREATE TABLE work (part text, during tstzrange);
CREATE INDEX ON work USING gist (during);

-- part: one of 8 times all of the product, else a part of it
CREATE FUNCTION part(n int) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN n = 1 THEN 'product:7' WHEN n % 2 = 0 THEN 'product:7/assets/thumb' ELSE 'product:7/search' END;

CREATE VIEW overlap AS SELECT a.part, b.part AS other FROM work a JOIN work b ON a.during && b.during AND a.part < b.part;

-- finish: writes down what was done since began; an import writes what it read then
CREATE FUNCTION finish(n int, began float8, had_thumbs int, had_entries int) RETURNS void LANGUAGE sql BEGIN ATOMIC
    INSERT INTO work VALUES (part(n), tstzrange(to_timestamp(began), clock_timestamp()));
    UPDATE product SET thumbs = CASE part(n) WHEN 'product:7' THEN had_thumbs WHEN 'product:7/assets/thumb' THEN thumbs + 1 ELSE thumbs END,
        entries = CASE part(n) WHEN 'product:7' THEN had_entries WHEN 'product:7/search' THEN entries + 1 ELSE entries END;
END;
