"""How far a published cube is from the truth. It reads confidential records: for the operator, not published."""
