import asyncio
import os
from uuid import uuid4

from launch import launch, upload
from operate import cancel, replay_failures
from runplane_api import Client, RunStatus, TaskStatus
from summarizer import Summarizer
from watch import attempt_events, change_log_cursor, counts, outcome, progress, runs_of, status_changes
from worker import work


async def one_run(client: Client) -> None:
    print("One run")
    run = await launch(client, {"text": "Runplane keeps work. It loses none."}, str(uuid4()))

    async def show_status() -> None:
        async for change in status_changes(client, run.run_id, run.cursor):
            before = change.from_status.value if change.from_status else "new"
            print(f"  {change.step}: {before} -> {change.to_status.value}")

    async def show_events() -> None:
        async for event in attempt_events(client, run.run_id, run.cursor):
            print(f"  {event.type_}: {event.data and event.data['content']}")

    await asyncio.gather(show_status(), show_events())
    result = await outcome(client, run.run_id)
    assert result and result.task_of_step and result.task_of_step.output and result.usage and result.cost
    print(f"  summary: {result.task_of_step.output['summary']}")
    print(f"  {result.status.value}, {result.usage.total_tokens} tokens, {result.cost.total} USD")


async def one_upload(client: Client, summarizer: Summarizer) -> None:
    print("An upload of 300 documents")
    correlation_id = f"upload-{uuid4()}"
    documents = [
        {"text": f"Document {i}. It has a second sentence.", "format": "text" if i % 100 else "pdf"}
        for i in range(300)
    ]
    launched = await upload(client, correlation_id, documents)
    async for over in progress(client, correlation_id, len(documents), launched[0].cursor):
        print(f"  {over} of {len(documents)} are over")
    tasks = await counts(client, correlation_id)
    assert tasks
    print(f"  {tasks.completed} completed, {tasks.failed} failed")

    summarizer.repaired = True
    now = await change_log_cursor(client)
    replayed = await replay_failures(client, "CONVERTER_BROKEN")
    async for over in progress(client, correlation_id, replayed, now):
        print(f"  {over} of {replayed} that were replayed are over")
    runs = [run async for run in runs_of(client, correlation_id)]
    print(f"  {sum(run.status == RunStatus.COMPLETED for run in runs)} runs are COMPLETED")


async def one_that_is_cancelled(client: Client) -> None:
    print("A run that is cancelled")
    run = await launch(client, {"format": "video"}, str(uuid4()))
    async for change in status_changes(client, run.run_id, run.cursor):
        print(f"  {change.to_status.value}")
        if change.to_status == TaskStatus.PROCESSING:
            await cancel(client, run.run_id, "It takes too long.")


async def one_that_is_handed_back(client: Client, stop: asyncio.Event) -> None:
    print("A worker that stops")
    run = await launch(client, {"format": "video"}, str(uuid4()))
    async for change in status_changes(client, run.run_id, run.cursor):
        print(f"  {change.to_status.value}")
        # Handed back, it would wait for another worker.
        if change.to_status == TaskStatus.ENQUEUED and stop.is_set():
            await cancel(client, run.run_id, "The example is over.")
        if change.to_status == TaskStatus.PROCESSING:
            stop.set()


async def main() -> None:
    server = os.environ.get("RUNPLANE_URL", "http://127.0.0.1:4000").removesuffix("/graphql")
    client = Client(f"{server}/graphql", os.environ["RUNPLANE_TOKEN"])
    summarizer = Summarizer()
    stop = asyncio.Event()

    async def story() -> None:
        await one_run(client)
        await one_upload(client, summarizer)
        await one_that_is_cancelled(client)
        await one_that_is_handed_back(client, stop)

    # Whichever fails ends the other.
    await asyncio.gather(work(client, summarizer.summarize, stop), story())
    print("The worker has stopped")


asyncio.run(main())
