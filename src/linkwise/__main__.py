"""``python -m linkwise``: the commands of ``linkwise``."""

from linkwise.cli.main import main

if __name__ == "__main__":
    main(prog_name="linkwise")
