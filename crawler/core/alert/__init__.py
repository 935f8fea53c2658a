"""Notifications about page changes: conditions on the text, digests, quiet hours, and retries.

`becomes_true` decides whether a change makes a condition true, `DeliveryTimes.compute_release` when its notification
may be sent, and `compute_next_try` when a failed message is sent again. Conditions do not see what the domain's noise
mask hides (`mask_text`). Of the other packages of core, this one uses core/change, core/http and core/page.
"""
