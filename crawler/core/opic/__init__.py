"""Importance of pages by Adaptive OPIC (Abiteboul, Preda, Cobena, WWW 2003), in integer coins.

`settle` shares the cash of a visited page out over its links; no coin is made or lost. `order` says which page a
domain's discovery takes first, `domains` how important domains are beside each other. Uses page and http.
"""
