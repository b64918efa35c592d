-- Coupons that are shown on many devices. Every redemption that was acknowledged is noted in `redeemed`.
CREATE TABLE coupon (id int PRIMARY KEY, status text NOT NULL DEFAULT 'unused');
CREATE TABLE redeemed (id int);
CREATE SEQUENCE next_coupon;
INSERT INTO coupon SELECT generate_series(1, 100000);
