"""The change feed under kills: writers and a consumer that are killed at random, and a restore in the middle."""
