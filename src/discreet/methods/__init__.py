"""Published systems, one folder for each method: its declaration, its mathematics with proofs, what it publishes."""

METHODS = {  # the declaration and the method are `NAME` in `spec` and `NAMEMethod` in `method` of its folder
    "counts": "Counts",
    "earnings": "Earnings",
    "employer": "Employer",
    "flows": "Flows",
    "hypercube": "Hypercube",
    "sensitivity": "Sensitivity",
}
COMMANDS = tuple(f"discreet.methods.{name}.commands" for name in ("sensitivity", "recode", "hypercube"))
