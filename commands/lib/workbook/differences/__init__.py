"""Where the reader's model first computes something else than ours, and which part makes it."""
