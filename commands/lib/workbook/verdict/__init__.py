"""What is right and wrong in a part, where the mistake is, and how this is said."""
