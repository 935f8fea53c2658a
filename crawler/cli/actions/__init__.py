"""What the commands do: ask the rooms, and print what they give. One's own pages and the Python surface ask them, too.

A folder for each kind of question: `upkeep` of the store; `domains` and their settings; `explain`, why a page is
crawled when it is; `pages`; `reports`; `delivery` to others; `crawls`. Each uses only what is named before it.
"""
