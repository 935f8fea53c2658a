"""Bodies read in bounded time and memory, in other processes where there are many.

`ParserPool` shares a few processes out among domains; `DomainParser` is what one domain has of it. Uses core alone.
"""
