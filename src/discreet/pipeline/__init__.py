"""One release from declaration to publication: plan, check, run, resume, abandon."""
