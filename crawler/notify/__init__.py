"""Notifications: delivery of changes to subscribers by email, chat, webhook or command.

`deliver` reads the feed for each subscription from its last position and sends the due messages; a slow or dead target
does not delay the others. `check_target` validates a target, and `send_test` sends a test message. `message_text`
writes the text of messages, `payload` the JSON of webhooks, and `render_atom_feed` the Atom feed. Secrets are resolved
when a message is sent and never stored.
"""
