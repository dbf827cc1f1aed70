from results import succeeded
from runplane_api import Changed, Client, RunAfterAction


async def cancel(client: Client, run_id: str, reason: str) -> RunAfterAction:
    return succeeded((await client.cancel_run(run_id, reason)).cancel_run, RunAfterAction)


async def replay_failures(client: Client, error_code: str) -> int:
    """Tasks that failed for good with this error are done again."""
    letters = (await client.dead_letters(error_code)).dead_letters
    ids = [letter.id for letter in letters.nodes] if letters else []
    succeeded((await client.replay_dead_letters(ids)).replay_dead_letters, Changed)
    return len(ids)
