-- Orders that are paid, cancelled and shipped at once. Every step that was acknowledged is noted in `step`.
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL DEFAULT 'pending');
CREATE TABLE step (id int, from_state text, to_state text);
INSERT INTO orders SELECT generate_series(1, 400);
