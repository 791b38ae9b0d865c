"""The book's wrong versions: which there are, and what shows that the checks reject them."""
