"""HTTP infrastructure of the query tool: middleware, limits, connections, caching, problem details."""
