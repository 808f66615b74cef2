"""A method that only tests have: counts, declared by nothing but attributes and ε."""
