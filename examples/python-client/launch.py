from typing import Any

from results import succeeded
from runplane_api import Client, Launched, LaunchRunInput


async def launch(client: Client, config: dict[str, Any], idempotency_key: str) -> Launched:
    """Launches one run. With the same key and the same input the first run is answered again."""
    run = LaunchRunInput(job="summarize", config=config, idempotency_key=idempotency_key)
    return succeeded((await client.launch(run)).launch_run, Launched)


async def upload(client: Client, correlation_id: str, documents: list[dict[str, Any]]) -> list[Launched]:
    """One upload: a run for each document, all with one correlation id, each with a key of its own."""
    runs = [
        LaunchRunInput(
            job="summarize",
            config=config,
            correlation_id=correlation_id,
            idempotency_key=f"{correlation_id}/{number}",
        )
        for number, config in enumerate(documents)
    ]
    launched = []
    for first in range(0, len(runs), 100):
        results = (await client.upload(runs[first : first + 100])).launch_runs or []
        launched += [succeeded(result, Launched) for result in results]
    return launched
