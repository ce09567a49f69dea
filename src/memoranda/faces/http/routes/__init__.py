"""The routes, a file an area. Each function only names what an operation takes and gives; the operations decide."""
