import sys

from diapause.commands import main

sys.exit(main())
