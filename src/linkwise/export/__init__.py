"""A robot's functions as C that needs nothing of linkwise: ``robot.export`` (``folder.py``)."""
