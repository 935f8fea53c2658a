"""Volatile content: text that differs from fetch to fetch without a change, such as clocks and counters.

It is learned from second fetches, seconds after the first (`learn_from_second_fetch`), from numbers that grow with time
(`learn_relative_time`), and from build stamps (`learn_stamps`). Other differences between visits on different days
prove nothing. Of the other packages of core, this one uses core/http and core/page.
"""
