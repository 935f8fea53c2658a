"""Notifications about page changes: conditions on the text, digests, quiet hours, and retries.

`becomes_true` decides whether a change makes a condition true, `DeliveryTimes.compute_release` when its notification
may be sent, and `compute_next_try` when a failed message is sent again. Conditions do not see what the domain's noise
mask hides (`mask_text`). Imports change and the packages below it.
"""
