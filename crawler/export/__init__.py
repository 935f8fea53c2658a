"""Export of pages to files and indexes.

`export` reads pages from the store in batches and passes them to a writer: JSON lines, CSV, Parquet, WARC, or a folder
of Markdown files. `sync` updates a PageIndex from the change feed: SqliteIndex for full-text search with `search`, or
PostgresIndex for embeddings. `open_in_thread` opens an index outside the event loop. Writers and indexes do not access
the store. `format_cell` makes a value safe for spreadsheets and is used wherever CSV is written.
"""
