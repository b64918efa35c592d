-- One show with 200 seats, and everybody wants the good ones.
CREATE TABLE show (id int PRIMARY KEY, title text);
CREATE TABLE seat (id int PRIMARY KEY, show int REFERENCES show, status text NOT NULL DEFAULT 'free', buyer int);
CREATE TABLE ticket (seat int REFERENCES seat, buyer int);
INSERT INTO show VALUES (1, 'The Winter''s Tale');
INSERT INTO seat (id, show) SELECT g, 1 FROM generate_series(1, 200) g;
