-- A page that is open in an editor: held, kept alive while somebody types, saved.
CREATE TABLE wiki_page (id int PRIMARY KEY, body text);
INSERT INTO wiki_page VALUES (1, 'text');
SELECT interlock.enable_versioning('wiki_page');
SELECT interlock.enable_marker('wiki_page', ttl => '2 min', notify => 'full');

-- Anna opens the page
SELECT locked, holder FROM interlock.lock_row('wiki_page', 1, 'anna', reason => 'new chapter');

-- Bert gets the name of the holder, and the reason
SELECT locked, holder FROM interlock.lock_row('wiki_page', 1, 'bert');
SELECT holder, reason FROM interlock.row_lock_of('wiki_page', 1);

-- the editor calls this every minute while Anna types; null would mean that she lost it
SELECT interlock.touch_row('wiki_page', 1, 'anna') IS NOT NULL AS still_hers;

-- she saves: the text is written and the page is free
SELECT interlock.save_row('wiki_page', 1, 'anna', '{"body": "better text"}') AS version;
