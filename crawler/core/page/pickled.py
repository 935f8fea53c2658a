"""How the values of a parsed page travel from the process that read it: as few bytes and steps as pickle needs."""

from typing import Any


class PickledAsCall:
    """Base of frozen dataclasses with slots that are pickled as a call of the class with all fields in their order.

    What dataclasses do by themselves looks all fields up by name for each object, at both ends. A page has hundreds of
    blocks: this way they take a third of the time to unpack, which the process that crawls has to do.
    """

    __slots__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        return type(self), tuple([getattr(self, name) for name in type(self).__slots__])
