"""The base of the generated client: requests that are repeated, and streams that resume by Last-Event-ID."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
from pydantic import BaseModel


class Transport:
    def __init__(self, url: str, token: str) -> None:
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        # Longer than a claim waits, and than a stream is silent.
        self.http = httpx.AsyncClient(headers=headers, timeout=40)
        self.url = url

    async def execute(self, query: str, operation_name: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Sends an operation until it is answered: each mutation here has what makes it safe to repeat."""
        body = body_of(query, operation_name, variables)
        for attempt in range(1, 11):
            data = await self.send(body)
            if data is not None:
                return data
            await asyncio.sleep(min(0.1 * 2**attempt, 5) * random.random())
        raise ConnectionError("The server does not answer.")

    async def send(self, body: str) -> dict[str, Any] | None:
        """None where the same request may succeed when it is repeated."""
        try:
            response = await self.http.post(self.url, content=body)
        except httpx.TransportError:
            return None
        if response.status_code == 429 or response.status_code >= 500:
            return None
        answer = response.json()
        if answer.get("errors"):
            raise RuntimeError(answer["errors"])
        data: dict[str, Any] = answer["data"]
        results = [one for field in data.values() for one in (field if isinstance(field, list) else [field])]
        if any(isinstance(one, dict) and one.get("__typename") == "Unavailable" for one in results):
            return None
        return data

    def get_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return data

    async def execute_ws(
        self, query: str, operation_name: str, variables: dict[str, Any]
    ) -> AsyncIterator[dict[str, Any]]:
        """The messages of a subscription until it is complete; a lost stream goes on after the last id."""
        body = body_of(query, operation_name, variables)
        headers = {"accept": "text/event-stream"}
        while True:
            try:
                async with self.http.stream("POST", self.url, content=body, headers=headers) as response:
                    if response.status_code < 500 and response.status_code != 200:
                        raise RuntimeError((await response.aread()).decode())
                    async for event in events(response.aiter_lines()):
                        if event["event"] == "complete":
                            return
                        message = json.loads(event["data"])
                        if message.get("errors"):
                            raise_unless_transient(message["errors"])
                            break
                        # From now on it wins over the cursor in the variables.
                        headers["last-event-id"] = event["id"]
                        yield message["data"]
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.5)


def body_of(query: str, operation_name: str, variables: dict[str, Any]) -> str:
    body = {"query": query, "operationName": operation_name, "variables": variables}
    return json.dumps(body, default=fields_of)


def fields_of(model: BaseModel) -> dict[str, Any]:
    """The fields of an input that were given: the others keep their defaults."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def raise_unless_transient(errors: list[dict[str, Any]]) -> None:
    """Who was too slow resumes; what repeating does not help against is raised."""
    codes = {error.get("extensions", {}).get("code") for error in errors}
    if not codes <= {"SLOW_CONSUMER", "UNAVAILABLE"}:
        raise RuntimeError(errors)


async def events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, str]]:
    """Server-sent events: fields line by line, each event ended by an empty line."""
    event: dict[str, str] = {}
    async for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")
        else:
            if "event" in event:
                yield event
            event = {}
