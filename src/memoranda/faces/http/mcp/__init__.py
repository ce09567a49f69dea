"""MCP over streamable HTTP on the same server: an agent's token, the same operations, the same guards."""
