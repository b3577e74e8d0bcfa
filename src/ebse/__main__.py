"""``python -m ebse``: the command line."""

from ebse.cli.app import main

if __name__ == "__main__":
    main()
