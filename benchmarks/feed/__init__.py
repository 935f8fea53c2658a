"""The change feed under failures: writers and a consumer that are killed at random, and a restore in the middle."""
