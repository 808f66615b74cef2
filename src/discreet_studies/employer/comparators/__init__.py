"""What is compared with and has no guarantee, or another one: noise infusion, zCDP for records."""
