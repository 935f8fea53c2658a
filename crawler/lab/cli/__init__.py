"""The commands of the laboratory, `recrawl lab`: options and help in two files, what is measured in others.

They use the laboratory, the shell of the command (crawler.cli) and the store. `app` is their entrance.
"""
