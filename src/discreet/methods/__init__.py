"""One package per method: its declaration, its mathematics with proofs, and its published tables."""

METHODS = {  # class of the declaration in `spec`; the method is `NAMEMethod` in `method` of the same package
    "counts": "Counts",
    "earnings": "Earnings",
    "employer": "Employer",
    "flows": "Flows",
    "hypercube": "Hypercube",
    "sensitivity": "Sensitivity",
}
COMMANDS = tuple(f"discreet.methods.{name}.commands" for name in ("sensitivity", "recode", "hypercube"))
