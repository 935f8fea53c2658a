"""What somebody is told of a page, and when: conditions on its text, digests, quiet hours, and further tries.

`becomes_true` says whether a change makes a condition true that was not before; `DeliveryTimes.release` when a message
of it may be sent; `compute_next_try` when one is sent again that was not taken. All of it is arithmetic on what is
given: text of a page without what its domain's noise mask hides (`mask_text`), and instants. Uses change and what is
below it.
"""
