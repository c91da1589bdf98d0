"""`python -m rota`: runs the program `rota`."""

import subprocess
import sys

from ._binary import binary

if __name__ == "__main__":
    sys.exit(subprocess.call([binary(), *sys.argv[1:]]))
