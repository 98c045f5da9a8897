"""Objects as a watch keeps them: nobody changes them, so what is read off one is read once.

Input: an object. Output: the same, with room for what was read off it; a copy is a plain object again. Plain objects
(documents of a command, copies) are read every time. Pure but for that room.
"""

import copy
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Watched(dict[str, Any]):
    """An object that is replaced as a whole and never changed."""

    __slots__ = ("_read",)

    def __init__(self, item: Mapping[str, Any]) -> None:
        super().__init__(item)
        self._read: dict[Hashable, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def once(self, what: Hashable, read: Callable[[], T]) -> T:
        """What was read before under this name, else what is read now; an error is not kept."""
        if what not in self._read:
            self._read[what] = read()
        return cast(T, self._read[what])
