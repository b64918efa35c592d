-- The table of the editor. The owner runs it; the server connects as the role app, which may not do more than this.

CREATE TABLE document (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    title text NOT NULL,
    body text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'draft'
);
GRANT SELECT, INSERT, UPDATE ON document TO app;

SELECT interlock.enable_versioning('document');
SELECT interlock.enable_marker('document', '1 min', notify => 'on', take_over => 'allow');
SELECT interlock.enable_history('document', keep_versions => 200, notify => 'on');
GRANT SELECT ON document_history TO app;

CREATE FUNCTION why_not_published(old document, new document) RETURNS text LANGUAGE sql AS $$
    SELECT 'the text is empty' WHERE btrim(new.body) = ''
$$;
SELECT interlock.define_transitions('document', 'status', '{"draft": ["review"], "review": ["draft", "published"], "published": ["draft"]}',
    guards => '{"review": {"published": "why_not_published(document, document)"}}');

INSERT INTO document (title, body)
SELECT title, body FROM interlock.set_holder('the first author'), (VALUES
    ('Welcome', E'Open this page in a second tab, as another person.\n\nWhoever edits is shown to all. Everybody else looks, and sees each change.\n'),
    ('Minutes of Monday', E'Present: Anna, Bert, Carl\n\nThe release is on Friday.\n'),
    ('An empty page', '')) AS first (title, body);
