from collections.abc import AsyncIterator

from runplane_api import (
    Client,
    CountsTaskCounts,
    OutcomeRun,
    RunsOfUploadRunsNodes,
    RunStatus,
    WatchAttemptsAttemptEventsEvents,
    WatchRunTaskStatusChangedChanges,
)


async def status_changes(
    client: Client, run_id: str, after: str
) -> AsyncIterator[WatchRunTaskStatusChangedChanges]:
    """Every status change of a run's tasks, from its launch until it is over."""
    seen = set()
    async for message in client.watch_run(run_id, after):
        for change in message.task_status_changed.changes:
            if change.id not in seen:
                yield change
            seen.add(change.id)


async def attempt_events(
    client: Client, run_id: str, after: str
) -> AsyncIterator[WatchAttemptsAttemptEventsEvents]:
    """What the run's agents tell while they work."""
    seen = set()
    async for message in client.watch_attempts(run_id, after):
        for event in message.attempt_events.events:
            if event.id not in seen:
                yield event
            seen.add(event.id)


IS_OVER = {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}


async def progress(client: Client, correlation_id: str, total: int, after: str) -> AsyncIterator[int]:
    """How many runs of an upload are over, each time that changes, until so many are."""
    over: set[str] = set()
    async for message in client.watch_upload(correlation_id, after):
        before = len(over)
        for change in message.run_status_changed.changes:
            if change.to_status in IS_OVER:
                over.add(change.run_id)
            else:
                over.discard(change.run_id)
        if len(over) != before:
            yield len(over)
        if len(over) == total:
            return


async def change_log_cursor(client: Client) -> str:
    """Where the change log ends now."""
    return (await client.change_log_cursor()).change_log_cursor


async def counts(client: Client, correlation_id: str) -> CountsTaskCounts | None:
    """How an upload stands, at one look."""
    return (await client.counts(correlation_id)).task_counts


async def outcome(client: Client, run_id: str) -> OutcomeRun | None:
    return (await client.outcome(run_id)).run


async def runs_of(client: Client, correlation_id: str) -> AsyncIterator[RunsOfUploadRunsNodes]:
    """All runs of an upload, page by page."""
    after = None
    while True:
        page = (await client.runs_of_upload(correlation_id, after)).runs
        if page is None:
            return
        for run in page.nodes:
            yield run
        if not page.page_info.has_next_page:
            return
        after = page.page_info.end_cursor
