"""The commands of the laboratory, `python -m labs`: options and help in two files, what is measured in others.

They use the laboratory, the shell of the command (crawler.cli) and the store. `app` is their entrance.
"""
