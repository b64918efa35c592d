-- One row that two people have open.
CREATE TABLE page_config (id int PRIMARY KEY, title text, price numeric);
INSERT INTO page_config VALUES (1, 'old title', 10);
