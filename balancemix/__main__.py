"""`python -m balancemix`, and so `torchrun -m balancemix train …`."""

import sys

from balancemix.cli import main

if __name__ == "__main__":
    sys.exit(main())
