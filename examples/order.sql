-- An order that is paid, cancelled and shipped by different programs.
CREATE TABLE shop_order (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'pending',
    paid_with text);

SELECT interlock.define_transitions('shop_order', 'status',
    '{"pending": ["paid", "cancelled"], "paid": ["shipped", "refunded"]}', initial => '{pending}');

INSERT INTO shop_order DEFAULT VALUES;

-- the payment, with what else changes in the same step
SELECT * FROM interlock.try_transition('shop_order', 1, 'pending', 'paid', '{"paid_with": "card"}');

-- the customer cancelled at the same moment, and came second: the answer has the order as it is
SELECT * FROM interlock.try_transition('shop_order', 1, 'pending', 'cancelled');

-- from a state in which it is declared, only if it was paid by card
SELECT * FROM interlock.try_transition('shop_order', 1, ARRAY['paid', 'shipped'], 'refunded', match => '{"paid_with": "card"}');

-- what may happen to an order next
SELECT to_state FROM interlock.transitions WHERE rel = 'shop_order'::regclass AND from_state = 'paid';
