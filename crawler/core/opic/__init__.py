"""Importance of pages by Adaptive OPIC (Abiteboul, Preda, Cobena, WWW 2003), with integer cash.

`opic` distributes the cash of a visited page over its links; the total stays constant. `order` ranks unfetched pages;
`domains` computes the importance of domains. From core, it imports only http.
"""
