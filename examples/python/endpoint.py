"""A payment that is sent twice with one Idempotency-Key is made once, and answered twice."""
from fastapi import APIRouter, Body, Depends, Response
from pg_interlock.starlette import transaction

payments = APIRouter()

@payments.post("/payments", status_code=201)
async def pay(response: Response, order: int = Body(), amount: float = Body(), tx=Depends(transaction)):
    (id,) = await (await tx.execute("INSERT INTO payment (order_id, amount) VALUES (%s, %s) RETURNING id", (order, amount))).fetchone()
    await tx.execute("SELECT interlock.transition('orders', %s, 'pending', 'paid', jsonb_build_object('paid', %s))", (order, amount))
    response.headers["Location"] = f"/payments/{id}"
    return {"id": id}
