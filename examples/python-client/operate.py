from results import succeeded
from runplane_api import CancelRunCancelRunIllegalState, Changed, Client, RunAfterAction


async def cancel(client: Client, run_id: str, reason: str) -> None:
    result = (await client.cancel_run(run_id, reason)).cancel_run
    # When it is repeated, the first one may have done it.
    is_done = isinstance(result, CancelRunCancelRunIllegalState) and result.status == "CANCELLED"
    if not is_done:
        succeeded(result, RunAfterAction)


async def replay_failures(client: Client, error_code: str) -> int:
    """Tasks that failed for good with this error are done again."""
    letters = (await client.dead_letters(error_code)).dead_letters
    ids = [letter.id for letter in letters.nodes] if letters else []
    succeeded((await client.replay_dead_letters(ids)).replay_dead_letters, Changed)
    return len(ids)
