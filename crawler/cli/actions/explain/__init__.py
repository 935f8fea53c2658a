"""Why a page is crawled when it is, and what recrawl believes of it."""
