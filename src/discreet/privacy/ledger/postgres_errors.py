"""Errors of a PostgreSQL server as messages of our own. The server's text is matched, never passed on."""

from __future__ import annotations

import re

from discreet.errors import LedgerError, LedgerUnavailable

LOCKED = "55P03"
APPEND_ONLY, FORGED, NOT_OWNER, NOT_LINKED = "DL001", "DL002", "DL003", "DL004"  # the guard's own

_GRANT = "ask its owner: GRANT USAGE ON SCHEMA …, GRANT SELECT, INSERT ON discreet_entries"
_REFUSED = {
    APPEND_ONLY: ("is append-only", "add an entry instead"),
    FORGED: ("an entry must name the user who writes it", "log in as that user"),
    NOT_OWNER: ("budgets are set by the owner of the ledger, and ledgers restored; others spend", "ask its owner"),
    NOT_LINKED: ("an entry must continue the chain", "write through discreet"),
    "42501": ("this user lacks the right to read or write it", _GRANT),
    "42P01": ("does not exist", "begin it by setting a budget: `discreet ledger budget ASSET --epsilon … --unit …`"),
    "42P07": ("another table or function has its name", "name another schema"),
    "42723": ("another table or function has its name", "name another schema"),
    "25006": ("its server is read-only (a standby?)", "name the primary server"),
    "53100": ("the server's disk is full", "have disk space freed"),
}
_LOST = ("08", "57")  # connection exceptions, and interventions of an operator

# A failed connection has no SQLSTATE, only a message; in another language the last, general error applies.
_UNREACHABLE = (
    (r'database ".*" does not exist', "its database does not exist", "check its name, or have it created"),
    (
        r'role ".*" does not exist|authentication|no password supplied|pg_hba|permission denied for database',
        "the server does not let this user in",
        "check the user, ~/.pgpass or PGPASSWORD, and the server's pg_hba.conf",
    ),
    (
        r"translate host name|refused|timeout|timed out|unreachable|No such file|starting up|shutting down|closed the",
        "the server cannot be reached",
        "check host and port, and that it runs",
    ),
    (r"SSL|certificate", "no connection as secure as `sslmode` requires", "check sslmode, sslrootcert and the server"),
    (r"too many|remaining connection slots", "the server has no connection left", "try again later"),
    (
        r"invalid (URI|percent|integer|port|connection|\w+ value)|missing|unrecognized|unexpected character",
        "is no PostgreSQL address",
        "write postgresql://USER@HOST:PORT/DATABASE",
    ),
)


def unreachable(message: str, where: str) -> LedgerError:
    """Why no connection could be made."""
    for pattern, what, do in _UNREACHABLE:
        if re.search(pattern, message):
            return LedgerUnavailable(what, where=where, do=do)
    return LedgerUnavailable("the server cannot be reached or refuses", where=where, do="check address and user")


def refused(state: str | None, where: str) -> LedgerError:
    """Why a statement failed, by its SQLSTATE. Without one the connection is gone: nothing was written."""
    if state in _REFUSED:
        what, do = _REFUSED[state]
        return LedgerError(what, where=where, do=do)
    if state is None or state.startswith(_LOST):
        what = "the statement was cancelled" if state == "57014" else "the connection to the server was lost"
        return LedgerUnavailable(f"{what}; nothing was written", where=where, do="check the server and try again")
    return LedgerError(
        f"cannot be used (SQLSTATE {state})", where=where, do="check that it is a ledger; see the server's log"
    )
