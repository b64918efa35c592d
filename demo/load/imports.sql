-- A catalog that is imported again and again. Four editors correct prices, each in articles of their own.
CREATE TABLE article (id int PRIMARY KEY, price int NOT NULL, stock int NOT NULL);
INSERT INTO article SELECT g, 100, 5 FROM generate_series(1, 400) g;
CREATE TABLE delivery AS SELECT * FROM article;
-- the last correction of each article that was acknowledged
CREATE TABLE corrected (id int PRIMARY KEY, price int NOT NULL);
CREATE VIEW lost AS SELECT id FROM corrected JOIN article USING (id) WHERE article.price <> corrected.price;
