"""Volatile places: text that differs from fetch to fetch though nothing has happened, such as clocks and counters.

They are learnt from second fetches, seconds after the first (`learn_from_second_fetch`), from counters that grow
exactly with time, and from stamps of builds (`learn_stamps`). Other differences between looks of different days prove
nothing. Uses page and what is below it.
"""
