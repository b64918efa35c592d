"""The buttons of an order: what may be clicked now and why not, and the click. Of two clicks at once one is 409."""
from fastapi import APIRouter
from db import il

orders = APIRouter(prefix="/orders")

@orders.get("/{id}")
async def state(id: int):
    return await il.states("orders").of(id)

@orders.post("/{id}/{before}/{after}")
async def move(id: int, before: str, after: str):
    await il.states("orders").move(id, before, after)
    return await state(id)
