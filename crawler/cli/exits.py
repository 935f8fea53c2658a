"""What the exit code of a command means. A command that returns nothing is done."""

DONE = 0
PROBLEM = 1  # a problem was found, or something that the user can mend failed
USAGE = 2  # it cannot be asked for like this
INTERRUPTED = 130  # as shells have it: 128 + SIGINT
TOO_OLD = 3  # a cursor of the change feed is older than what is kept
