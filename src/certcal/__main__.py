"""``python -m certcal``."""

from certcal.cli import main

if __name__ == "__main__":
    main()
