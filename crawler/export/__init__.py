"""TAKES AWAY: the pages of a domain in forms that other programs read, as many as there are in the memory of a few.

`export` reads pages from the store a batch at a time and gives them to a writer: lines of JSON, CSV, Parquet, WARC, or
a folder of Markdown. `sync` keeps a PageIndex in step by the change feed: SqliteIndex for search by words, which
`search` reads, PostgresIndex for embeddings; `open_in_thread` opens one beside the event loop. Writers and indexes are
modules of their own and know nothing of the store. Uses core and the store; the command calls it. `cell` makes a value
safe for a spreadsheet, here and wherever CSV is written.
"""
