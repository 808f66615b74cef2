"""What stands between the query tool and the network: limits, checks, connections, error messages."""
