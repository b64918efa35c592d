-- A row of settings with an updated_time, which two administrators edit.
CREATE TABLE settings (
    id int PRIMARY KEY,
    title text,
    price numeric,
    updated_time timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO settings (id, title, price) VALUES (1, 'Welcome', 10);

-- the column that is there becomes the version
SELECT interlock.enable_versioning('settings', 'updated_time');

-- both read the row; the first one saves
SELECT updated_time::text AS token FROM settings WHERE id = 1 \gset
SELECT outcome FROM interlock.try_versioned_update('settings', 1, :'token', '{"title": "Hello"}');

-- the second one changes another column: both changes are kept
SELECT outcome, current->>'title' AS title, current->>'price' AS price
  FROM interlock.try_versioned_update('settings', 1, :'token', '{"price": 12}',
      base => '{"title": "Welcome", "price": 10}', on_conflict => 'merge');
