"""The ways in: command line, MCP, Python. A face translates and decides nothing."""
