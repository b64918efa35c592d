"""A cart holds its items for 15 minutes, and an order sells them. Tokens stay on the server, in the table cart."""
import json
from fastapi import APIRouter
from pg_interlock import Item, Reservation
from db import il, pool

carts = APIRouter(prefix="/carts")

async def load(id):
    async with pool.connection() as connection:
        row = await (await connection.execute("SELECT items FROM cart WHERE id = %s", (id,))).fetchone()
    return il.cart(id, "15 min", [Reservation.of(each) for each in row[0]] if row else [])

@carts.post("/{id}/items", status_code=201)
async def add(id: str, items: dict[int, int]):
    cart = await load(id)
    held = await cart.add(*[Item("item", item, "stock", amount) for item, amount in items.items()])     # 409: not enough
    async with pool.connection() as connection:
        await connection.execute("INSERT INTO cart VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET items = cart.items || excluded.items",
                                 (id, json.dumps([held.as_dict()])))
    return {"until": held.expires_at}

@carts.post("/{id}/order", status_code=201)
async def order(id: str):
    cart = await load(id)
    lines = [(item.key, item.amount) for item in cart.items]
    async with cart.confirm() as tx:                                                                    # 409: too late
        (number,) = await (await tx.execute("INSERT INTO orders (cart) VALUES (%s) RETURNING id", (id,))).fetchone()
        for item, amount in lines:
            await tx.execute("INSERT INTO order_line VALUES (%s, %s, %s)", (number, item, amount))
        await tx.execute("DELETE FROM cart WHERE id = %s", (id,))
    return {"order": number}
