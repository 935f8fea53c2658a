"""What pairs of looks have shown of something that may differ from look to look, and when that is believed no more."""

from dataclasses import dataclass

ENOUGH_MOVED = 2  # pairs; what differed in one alone may have been edited between its two looks
MOST_MOVED = 8
STEADY = 4  # pairs in a row in which it stood still, for each in which it had moved, end the proof


@dataclass(frozen=True, slots=True)
class Proof:
    """How something came through pairs. moved: in how many it differed, 8 at most.  steady: in how many since it did
    not.
    """

    moved: int = 0
    steady: int = 0

    @property
    def holds(self) -> bool:
        """Whether it is volatile, as far as is known."""
        return self.moved >= ENOUGH_MOVED

    def after(self, *, moved: bool) -> "Proof":
        """After one more pair. What has stood still for long enough is as if it had never moved."""
        if moved:
            return Proof(min(self.moved + 1, MOST_MOVED))
        steady = self.steady + 1
        return Proof(self.moved, steady) if steady < STEADY * self.moved else Proof()


UNPROVEN = Proof()
PROVEN = Proof(ENOUGH_MOVED)
