"""`python -m headway` is the command line, as `headway` is."""

from headway.cli import main

if __name__ == "__main__":
    main()
