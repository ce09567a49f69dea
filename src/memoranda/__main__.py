"""`python -m memoranda` is the command line."""

import sys

from memoranda.faces.cli import main

if __name__ == "__main__":
    sys.exit(main())
