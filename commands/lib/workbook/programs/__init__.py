"""Programs of checks in which another source takes the place of one of our parts."""
