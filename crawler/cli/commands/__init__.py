"""The commands as they are typed: options, arguments and help, a file for each, named as the command.

What a command does is imported when it is called, so that --help waits for none of it: from crawler.cli.actions, or,
where it takes a few lines, within the command itself.
"""
