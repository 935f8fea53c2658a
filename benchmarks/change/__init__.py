"""How well detectors of change tell a real edit from noise: made-up sites of real pages, looked at again and again."""
