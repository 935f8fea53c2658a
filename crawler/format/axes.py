"""Axes of charts: their scale and their tick marks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

TICK_COUNT = 6  # the approximate number per axis
STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear or logarithmic scale from low to high, with low < high. On a log scale, both are above 0."""

    low: float
    high: float
    is_log: bool = False

    def normalize(self, value: float) -> float:
        """Return the position of a value: 0 at low, 1 at high."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        """Return the tick marks: round numbers, on a long log scale only powers of ten."""
        if not self.is_log:
            step = _choose_step(self.high - self.low)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [n * step for n in range(first, last + 1)]
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        digits = (1.0,) if len(decades) > 4 else (1.0, 2.0, 5.0)
        ticks = [digit * 10.0**decade for decade in decades for digit in digits]
        return [mark for mark in ticks if self.low * 0.999 <= mark <= self.high * 1.001]


def make_axis(values: Iterable[float], *, is_log: bool = False) -> Axis:
    """Return an axis between round numbers that contains all values. A linear axis contains 0.

    is_log: use a log scale, and ignore values that are not above 0.
    """
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)]
    if not finite:
        return Axis(0.1 if is_log else 0.0, 1.0, is_log=is_log)
    if is_log:
        low, high = _round_down(min(finite)), -_round_down(-max(finite))
        return Axis(low, high if high > low else low * 10, is_log=True)
    low, high = min(0.0, *finite), max(0.0, *finite)
    step = _choose_step((high - low) or 1.0)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step or step)


def format_tick(value: float) -> str:
    """Format the number of a tick mark: in whole numbers from 1,000 on, else with up to six digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def _choose_step(length: float) -> float:
    """Return a round step that divides the length into about TICK_COUNT parts."""
    rough = length / TICK_COUNT
    decade = 10.0 ** math.floor(math.log10(rough))
    return next(step * decade for step in STEPS if step * decade >= rough * 0.999)


def _round_down(value: float) -> float:
    """Return the value or the next lower number of the form 1, 2 or 5 times a power of ten, or its negative."""
    size = abs(value)
    steps = [step * 10.0 ** math.floor(math.log10(size)) for step in STEPS]
    if value > 0:
        return max(step for step in steps if step <= size * 1.001)
    return -min(step for step in steps if step >= size * 0.999)
