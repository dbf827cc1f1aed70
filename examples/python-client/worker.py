import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from results import succeeded
from runplane_api import (
    AttemptEventInput,
    Claimed,
    ClaimedTask,
    ClaimTasksInput,
    Client,
    ExecutionErrorInput,
    ExtendLeaseInput,
    LeaseRef,
    LeaseState,
    Reported,
    ReportResultInput,
    ResultStatus,
    Told,
)

Tell = Callable[[str, dict[str, Any]], Awaitable[None]]
# An agent gets its input and a way to tell what it does, and gives the fields of its result.
Agent = Callable[[Any, Tell], Awaitable[dict[str, Any]]]


async def work(client: Client, agent: Agent, stop: asyncio.Event) -> None:
    """Claims and executes tasks until it is told to stop: then what it has not finished is handed back."""
    worker_id = f"python-{uuid4()}"
    while not stop.is_set():
        claim = ClaimTasksInput(
            worker_id=worker_id,
            agents=["summarizer"],
            limit=20,
            wait_seconds=2,
            lease_seconds=15,
            idempotency_key=str(uuid4()),
        )
        claimed = succeeded((await client.claim(claim)).claim_tasks, Claimed)
        await asyncio.gather(*(execute(client, task, agent, stop) for task in claimed.assignments))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), claimed.retry_after_seconds)


async def execute(client: Client, task: ClaimedTask, agent: Agent, stop: asyncio.Event) -> None:
    lease = LeaseRef(attempt_id=task.attempt_id, lease_token=task.lease_token)
    sequence = 0

    async def tell(kind: str, data: dict[str, Any]) -> None:
        nonlocal sequence
        sequence += 1
        event = AttemptEventInput(type_=kind, data=data)
        succeeded((await client.tell(lease, [event], sequence)).append_attempt_events, Told)

    working = asyncio.ensure_future(agent(task.input, tell))
    unwanted = asyncio.create_task(until_unwanted(client, task))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([working, unwanted, stopped], return_when=asyncio.FIRST_COMPLETED)
    unwanted_now = unwanted.done() and unwanted.result() is None
    for other in (working, unwanted, stopped):
        other.cancel()
    await asyncio.wait([working, unwanted, stopped])

    if not working.cancelled() and working.exception() is None:
        result = working.result()
    elif unwanted_now:
        result = {"status": ResultStatus.CANCELLED}
    elif working.cancelled():
        result = {"status": ResultStatus.RELEASED}
    else:
        error = ExecutionErrorInput(code="CRASHED", message=str(working.exception()))
        result = {"status": ResultStatus.FAILED, "error": error}
    report = ReportResultInput(attempt_id=task.attempt_id, lease_token=task.lease_token, **result)
    succeeded((await client.report(report)).report_result, Reported)


async def until_unwanted(client: Client, task: ClaimedTask) -> None:
    """Extends the lease long before it ends; over when the work is not wanted any more."""
    lease = ExtendLeaseInput(attempt_id=task.attempt_id, lease_token=task.lease_token)
    while True:
        leases = (await client.heartbeat(lease)).extend_leases
        if not leases or leases[0].state != LeaseState.HELD:
            return
        await asyncio.sleep(task.lease_seconds / 3)
