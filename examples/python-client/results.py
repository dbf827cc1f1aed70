from typing import Any, TypeVar

Success = TypeVar("Success")


def succeeded(result: Any, success: type[Success]) -> Success:
    """What a mutation did. Its expected failures, the other members of its union, are raised."""
    if isinstance(result, success):
        return result
    raise RuntimeError(f"{result.typename__}: {result.message}" if result else "There is no result.")
