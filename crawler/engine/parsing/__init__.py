"""Parsing of bodies within limits of time and memory, usually in other processes.

`ParserPool` shares a few parser processes among domains; a `DomainParser` uses the pool for one domain.
"""
