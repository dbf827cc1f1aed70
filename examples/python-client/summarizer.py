import asyncio
from typing import Any

from runplane_api import ErrorKind, ExecutionErrorInput, ModelUsageInput, ResultStatus
from worker import Tell


class Summarizer:
    """Stands for a call of a model: it "summarizes" by keeping the first sentence."""

    def __init__(self) -> None:
        self.repaired = False

    async def summarize(self, document: Any, tell: Tell) -> dict[str, Any]:
        if document.get("format") == "video":
            await asyncio.sleep(3600)
        if document.get("format") == "pdf" and not self.repaired:
            error = ExecutionErrorInput(
                code="CONVERTER_BROKEN",
                kind=ErrorKind.PERMANENT,
                message="The converter of PDF files is broken.",
            )
            return {"status": ResultStatus.FAILED, "error": error}
        text = document.get("text", "")
        summary = text.split(". ")[0]
        await tell("thought", {"content": f"The text has {len(text)} characters."})
        await tell("final_answer", {"content": summary, "done": True, "is_fallback": False})
        usage = ModelUsageInput(model="gpt-4.1-mini", input_tokens=900, output_tokens=12, cost="0.0003792")
        return {"status": ResultStatus.COMPLETED, "output": {"summary": summary}, "usage": [usage]}
